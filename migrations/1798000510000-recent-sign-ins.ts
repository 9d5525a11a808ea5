import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Own keys of people that need a recent sign-in. Replicas of the version before create such keys without that rule. */
export class RecentSignIns1798000510000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE gateway_key ADD latest_expiry timestamptz;
      CREATE INDEX gateway_key_latest_expiry_idx ON gateway_key (latest_expiry) WHERE latest_expiry IS NOT NULL;
      COMMENT ON COLUMN gateway_key.latest_expiry IS
        'Until when sign-ins of its owner move expires_at; null if they do not.';
    `);
  }

  /** Keys keep the end that they have: the version before could not extend them. */
  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE gateway_key DROP latest_expiry;
      UPDATE team SET self_service = self_service - 'sign_in_within_days' WHERE self_service ? 'sign_in_within_days';
    `);
  }
}
