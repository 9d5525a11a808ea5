import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Sessions that can be listed and ended, and sign-ins at the OpenID provider that can be used once. Replicas of the version
 * before neither write nor read the new columns.
 */
export class Sessions1798000080000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      -- UUIDv7, which cursors need, also for replicas of the version before.
      CREATE FUNCTION admin_session_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
        SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
          substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid
      $$;
      ALTER TABLE admin_session
        ADD id uuid NOT NULL DEFAULT admin_session_id(), ADD user_id text, ADD settings bytea;
      CREATE UNIQUE INDEX admin_session_id_key ON admin_session (id);
      CREATE INDEX admin_session_user_id_idx ON admin_session (user_id);
      CREATE INDEX admin_session_last_seen_at_idx ON admin_session (last_seen_at);

      CREATE TABLE admin_sign_in (
        digest bytea CONSTRAINT admin_sign_in_pkey PRIMARY KEY,
        expires_at timestamptz NOT NULL
      );
      CREATE INDEX admin_sign_in_expires_at_idx ON admin_sign_in (expires_at);

      COMMENT ON COLUMN admin_session.id IS 'To list and end it; of no use as a cookie.';
      COMMENT ON COLUMN admin_session.user_id IS
        'admin-token, token:<ID>, or sso:<issuer>#<sub>; null if an earlier version began it.';
      COMMENT ON COLUMN admin_session.settings IS
        'HMAC-SHA-256 of the settings that it depends on; null if an earlier version began it.';
      COMMENT ON TABLE admin_sign_in IS 'Sign-ins at the OpenID provider that have been used.';
      COMMENT ON COLUMN admin_sign_in.digest IS 'SHA-256 of its state.';
      COMMENT ON COLUMN admin_sign_in.expires_at IS 'Well after the cookie of the sign-in.';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TABLE admin_sign_in;
      DROP INDEX admin_session_last_seen_at_idx;
      ALTER TABLE admin_session DROP id, DROP user_id, DROP settings;
      DROP FUNCTION admin_session_id();
    `);
  }
}
