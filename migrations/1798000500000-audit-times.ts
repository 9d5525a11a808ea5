import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Every replica reads the latest entries of the audit log with each poll. */
export class AuditTimes1798000500000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('CREATE INDEX audit_log_at_idx ON audit_log (at)');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP INDEX audit_log_at_idx');
  }
}
