import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddInvoiceLines1795000099001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE invoice_line (
        id uuid CONSTRAINT invoice_line_pkey PRIMARY KEY,
        team_id uuid NOT NULL,
        started_at timestamptz NOT NULL,
        cost_usd numeric(18,9)
      );
      COMMENT ON TABLE invoice_line IS 'What each call costs its team.';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE invoice_line');
  }
}
