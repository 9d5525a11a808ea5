import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Providers to which the identity of the gateway gives access, in place of a stored secret. */
export class KeylessProviders1798000400000 implements MigrationInterface {
  /** An older gateway sends calls to a provider with an unknown way of authentication without any credential. */
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE provider
        DROP CONSTRAINT provider_auth_check,
        ADD CONSTRAINT provider_auth_check CHECK (auth IN (
          'bearer', 'x-api-key', 'api-key', 'x-goog-api-key', 'client', 'aws-sigv4', 'google', 'oauth2',
          'openai-federation', 'anthropic-federation'));
      COMMENT ON COLUMN provider.auth IS
        'How the secret is used: bearer, the name of a header, aws-sigv4, google or oauth2. openai-federation, anthropic-federation: an identity token is exchanged. client: callers send their own credential.';
      COMMENT ON COLUMN provider.auth_settings IS
        'What the other ways of authentication need besides the secret, or in its place; null for bearer, headers and client.';
    `);
  }

  /** What came before knows none of them. */
  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DELETE FROM provider
        WHERE auth IN ('openai-federation', 'anthropic-federation') OR auth_settings ?| ARRAY['credentials', 'source'];
      ALTER TABLE provider
        DROP CONSTRAINT provider_auth_check,
        ADD CONSTRAINT provider_auth_check CHECK (auth IN (
          'bearer', 'x-api-key', 'api-key', 'x-goog-api-key', 'client', 'aws-sigv4', 'google', 'oauth2'));
      COMMENT ON COLUMN provider.auth IS
        'How the secret is used: bearer, the name of a header, aws-sigv4, google or oauth2. client: callers send their own credential.';
      COMMENT ON COLUMN provider.auth_settings IS
        'What aws-sigv4, google and oauth2 need besides the secret; null for the others.';
    `);
  }
}
