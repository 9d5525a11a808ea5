import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Tokens of the admin API beside ADMIN_TOKEN, and the sessions of the console. */
export class AdminAccess1795800000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE admin_token (
        id uuid CONSTRAINT admin_token_pkey PRIMARY KEY,
        name text NOT NULL CONSTRAINT admin_token_name_key UNIQUE,
        digest bytea NOT NULL,
        prefix text NOT NULL,
        role text NOT NULL
          CONSTRAINT admin_token_role_check CHECK (role IN ('admin', 'viewer', 'team', 'metrics')),
        teams uuid[],
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz,
        last_used_at timestamptz,
        CONSTRAINT admin_token_teams_check CHECK ((role = 'team') = (teams IS NOT NULL))
      );
      CREATE UNIQUE INDEX admin_token_digest_key ON admin_token (digest);

      CREATE TABLE admin_session (
        digest bytea CONSTRAINT admin_session_pkey PRIMARY KEY,
        token_id uuid CONSTRAINT admin_session_token_id_fkey REFERENCES admin_token (id) ON DELETE CASCADE,
        actor text NOT NULL,
        role text NOT NULL CONSTRAINT admin_session_role_check CHECK (role IN ('admin', 'viewer', 'team')),
        teams uuid[],
        created_at timestamptz NOT NULL DEFAULT now(),
        last_seen_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz NOT NULL,
        client_ip inet,
        CONSTRAINT admin_session_teams_check CHECK ((role = 'team') = (teams IS NOT NULL))
      );
      CREATE INDEX admin_session_token_id_idx ON admin_session (token_id);

      COMMENT ON TABLE admin_token IS 'Tokens of the admin API beside ADMIN_TOKEN. Only digests are stored.';
      COMMENT ON COLUMN admin_token.digest IS 'SHA-256 of the token.';
      COMMENT ON COLUMN admin_token.prefix IS 'First characters of the token, to recognise it.';
      COMMENT ON COLUMN admin_token.teams IS 'IDs of the teams that a token of the role team may see; else null.';
      COMMENT ON COLUMN admin_token.expires_at IS 'Null if the token never expires.';
      COMMENT ON COLUMN admin_token.last_used_at IS 'Updated with a delay of up to a minute.';
      COMMENT ON TABLE admin_session IS 'Sessions of the console. Only digests are stored.';
      COMMENT ON COLUMN admin_session.digest IS 'HMAC-SHA-256 of the cookie, with ADMIN_TOKEN as the key.';
      COMMENT ON COLUMN admin_session.token_id IS 'Token that began it; null for ADMIN_TOKEN and single sign-on.';
      COMMENT ON COLUMN admin_session.actor IS 'Name of its user in the audit log.';
      COMMENT ON COLUMN admin_session.teams IS 'IDs of the teams that a session of the role team may see; else null.';
      COMMENT ON COLUMN admin_session.last_seen_at IS 'Updated with a delay of up to a minute.';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE admin_session; DROP TABLE admin_token;');
  }
}
