import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Who changed what, and versions of teams and keys, so that nobody overwrites what they have not seen. */
export class Audit1795000004000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      -- In the order in which look-ups of keys lock the two.
      ALTER TABLE gateway_key ADD COLUMN version int NOT NULL DEFAULT 1;
      ALTER TABLE team ADD COLUMN version int NOT NULL DEFAULT 1;

      CREATE TABLE audit_log (
        id uuid CONSTRAINT audit_log_pkey PRIMARY KEY,
        at timestamptz NOT NULL DEFAULT now(),
        actor text NOT NULL,
        client_ip inet,
        action text NOT NULL,
        subject_type text NOT NULL,
        subject_id uuid NOT NULL,
        -- As it was called then: names change, and what was removed has none any more.
        subject_name text NOT NULL,
        before jsonb,
        after jsonb
      );
      -- "What happened to this one", newest first. Everything else is asked for along the primary key: changes are made
      -- by people and are few.
      CREATE INDEX audit_log_subject_id_idx ON audit_log (subject_id, id);
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TABLE audit_log;
      ALTER TABLE gateway_key DROP COLUMN version;
      ALTER TABLE team DROP COLUMN version;
    `);
  }
}
