import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Limits that all replicas share, which they charge at the same time. */
export class HotLimits1798000270000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE limit_rule ADD COLUMN rank smallint NOT NULL DEFAULT 0;
      COMMENT ON COLUMN limit_rule.rank IS 'The order in which meters are locked: 0 of keys and teams, 1 of groups, 2 of the installation.';

      CREATE TABLE limit_spent (
        rule_id uuid,
        subject text,
        window_start timestamptz,
        part smallint,
        spent bigint NOT NULL,
        admitted_at timestamptz NOT NULL,
        CONSTRAINT limit_spent_pkey PRIMARY KEY (rule_id, subject, window_start, part)
      );
      COMMENT ON TABLE limit_spent IS 'Charges of limits that all replicas share, until they are added to limit_meter.';

      CREATE TABLE limit_hot_process (
        id uuid CONSTRAINT limit_hot_process_pkey PRIMARY KEY,
        seq bigint NOT NULL
      );
      COMMENT ON TABLE limit_hot_process IS 'The last message of each gateway process about limits that all replicas share.';`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TABLE limit_hot_process;
      DROP TABLE limit_spent;
      ALTER TABLE limit_rule DROP COLUMN rank;`);
  }
}
