import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Whom a call is for and what it belongs to. Nullable columns only: instant on any log. */
export class Attribution1795400001000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      'ALTER TABLE request_log ADD COLUMN end_user text, ADD COLUMN session_id text, ADD COLUMN tags jsonb',
    );
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      'ALTER TABLE request_log DROP COLUMN end_user, DROP COLUMN session_id, DROP COLUMN tags',
    );
  }
}
