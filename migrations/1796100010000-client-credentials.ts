import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Providers to which callers send their own credential. */
export class ClientCredentials1796100010000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE provider
        DROP CONSTRAINT provider_auth_check,
        ADD CONSTRAINT provider_auth_check
          CHECK (auth IN ('bearer', 'x-api-key', 'api-key', 'x-goog-api-key', 'client'));
      COMMENT ON COLUMN provider.auth IS
        'How the secret is sent: bearer, or the name of the header. client: callers send their own credential.';
    `);
  }

  /** Providers without a secret cannot be used by what came before: they are disabled. */
  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      UPDATE provider SET auth = 'bearer', enabled = false WHERE auth = 'client';
      ALTER TABLE provider
        DROP CONSTRAINT provider_auth_check,
        ADD CONSTRAINT provider_auth_check CHECK (auth IN ('bearer', 'x-api-key', 'api-key', 'x-goog-api-key'));
      COMMENT ON COLUMN provider.auth IS 'How the secret is sent: bearer, or the name of the header.';
    `);
  }
}
