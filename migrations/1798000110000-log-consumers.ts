import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Modules that get each row of the request log once, in transactions of their own tables. */
export class LogConsumers1798000110000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE log_consumer (
        name text CONSTRAINT log_consumer_pkey PRIMARY KEY,
        -- The consumer has every row up to this place, in the order (recorded_at, id).
        recorded_until timestamptz NOT NULL,
        recorded_until_id uuid NOT NULL,
        -- Rows that retention removed before the consumer had them.
        missed_rows bigint NOT NULL DEFAULT 0,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now()
      );
      COMMENT ON TABLE log_consumer IS 'How far each module is that gets the rows of the request log.';
      COMMENT ON COLUMN log_consumer.missed_rows IS 'Rows that retention removed before the consumer had them.';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE log_consumer');
  }
}
