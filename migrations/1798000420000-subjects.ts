import type { MigrationInterface, QueryRunner } from 'typeorm';
import { commentOnRequestLog } from './comments.js';

/** Whom the token of a call was issued to. Instant on any log. Rows that replicas of the version before write have none. */
export class Subjects1798000420000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE request_log ADD COLUMN subject text');
    await commentOnRequestLog(queryRunner);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE request_log DROP COLUMN subject');
  }
}
