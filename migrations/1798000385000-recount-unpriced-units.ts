import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Earlier versions did not count calls that are billed by units and have no price, such as rerank and images, as unpriced, so
 * their sums of costs look complete. The replicas count them again, an hour of the log at a time, where the log still has all
 * rows of a sum. Instant on any log.
 */
export class RecountUnpricedUnits1798000385000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`UPDATE usage_rollup SET complete_cursor = 'epoch'`);
  }

  /** The earlier version counts them as it did. */
  async down(): Promise<void> {}
}
