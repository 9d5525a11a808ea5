import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Providers whose secret signs requests or obtains access tokens, and what else that needs. */
export class ProviderAuthSettings1796200010000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE provider
        ADD COLUMN auth_settings jsonb,
        DROP CONSTRAINT provider_auth_check,
        ADD CONSTRAINT provider_auth_check CHECK (auth IN (
          'bearer', 'x-api-key', 'api-key', 'x-goog-api-key', 'client', 'aws-sigv4', 'google', 'oauth2'));
      COMMENT ON COLUMN provider.auth IS
        'How the secret is used: bearer, the name of a header, aws-sigv4, google or oauth2. client: callers send their own credential.';
      COMMENT ON COLUMN provider.auth_settings IS
        'What aws-sigv4, google and oauth2 need besides the secret; null for the others.';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    // Without this migration, their secrets would be sent as they are.
    await queryRunner.query(`
      DELETE FROM provider WHERE auth IN ('aws-sigv4', 'google', 'oauth2');
      ALTER TABLE provider
        DROP COLUMN auth_settings,
        DROP CONSTRAINT provider_auth_check,
        ADD CONSTRAINT provider_auth_check
          CHECK (auth IN ('bearer', 'x-api-key', 'api-key', 'x-goog-api-key', 'client'));
      COMMENT ON COLUMN provider.auth IS
        'How the secret is sent: bearer, or the name of the header. client: callers send their own credential.';
    `);
  }
}
