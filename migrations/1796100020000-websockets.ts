import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Whether a key may open WebSockets. */
export class Websockets1796100020000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE gateway_key ADD COLUMN websockets boolean NOT NULL DEFAULT false;
      COMMENT ON COLUMN gateway_key.websockets IS 'Whether it may open WebSockets.';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE gateway_key DROP COLUMN websockets');
  }
}
