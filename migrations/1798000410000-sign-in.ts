import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * People who sign in from a client, their sign-ins, and what a sign-in is begun and renewed with. Replicas of the version
 * before know no tokens of sign-ins, so SIGN_IN is set when all replicas are of this one.
 */
export class SignIn1798000410000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE person (
        id uuid CONSTRAINT person_pkey PRIMARY KEY,
        issuer text NOT NULL,
        subject text NOT NULL,
        name text NOT NULL,
        email text,
        created_at timestamptz NOT NULL DEFAULT now(),
        last_sign_in_at timestamptz,
        ended_at timestamptz,
        reopened_at timestamptz,
        version int NOT NULL DEFAULT 1,
        CONSTRAINT person_issuer_subject_key UNIQUE (issuer, subject)
      );
      COMMENT ON TABLE person IS 'People who sign in by single sign-on, by their ID at the OpenID provider.';
      COMMENT ON COLUMN person.issuer IS 'The OpenID provider.';
      COMMENT ON COLUMN person.subject IS 'The ID of the person there. It is never given to another person; e-mail addresses are.';
      COMMENT ON COLUMN person.name IS 'What the provider calls the person: for people to read only.';
      COMMENT ON COLUMN person.email IS 'E-mail address that the provider vouched for at the last sign-in; null if it did not.';
      COMMENT ON COLUMN person.ended_at IS 'Since when the person may not sign in, and none of their tokens works; null: they may.';
      COMMENT ON COLUMN person.reopened_at IS 'When they were last allowed in again. A key of theirs that was revoked before then no longer stops a sign-in.';
      COMMENT ON COLUMN person.version IS 'Increases with every change by an actor.';

      CREATE TABLE sign_in (
        id uuid CONSTRAINT sign_in_pkey PRIMARY KEY,
        person_id uuid NOT NULL CONSTRAINT sign_in_person_id_fkey REFERENCES person (id),
        key_id uuid NOT NULL CONSTRAINT sign_in_key_id_fkey REFERENCES gateway_key (id),
        surface text NOT NULL,
        client_ip inet,
        program text,
        created_at timestamptz NOT NULL DEFAULT now(),
        last_renewed_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz NOT NULL,
        ended_at timestamptz,
        end_reason text,
        idp_sid text,
        idp_refresh bytea,
        idp_checked_at timestamptz NOT NULL DEFAULT now(),
        renewing_until timestamptz,
        spent_refused_at timestamptz
      );
      CREATE INDEX sign_in_person_id_idx ON sign_in (person_id);
      CREATE INDEX sign_in_key_id_idx ON sign_in (key_id);
      CREATE INDEX sign_in_ended_idx ON sign_in (ended_at) WHERE ended_at IS NOT NULL;
      CREATE INDEX sign_in_expires_idx ON sign_in (expires_at) WHERE ended_at IS NULL;
      COMMENT ON TABLE sign_in IS 'Sign-ins of people from a client: each is renewed until it ends.';
      COMMENT ON COLUMN sign_in.key_id IS 'The key of the person in the team that they chose.';
      COMMENT ON COLUMN sign_in.surface IS 'The client, as it calls itself.';
      COMMENT ON COLUMN sign_in.client_ip IS 'Address of the client, as REQUEST_LOG_CLIENT says.';
      COMMENT ON COLUMN sign_in.program IS 'User-Agent of the client, as REQUEST_LOG_CLIENT says.';
      COMMENT ON COLUMN sign_in.expires_at IS 'When the person must sign in again.';
      COMMENT ON COLUMN sign_in.ended_at IS 'When it ended; none of its tokens works since. Null: it has not.';
      COMMENT ON COLUMN sign_in.end_reason IS 'Why it ended.';
      COMMENT ON COLUMN sign_in.idp_sid IS 'Session at the OpenID provider that it began in; null if the provider names none.';
      COMMENT ON COLUMN sign_in.idp_refresh IS 'Encrypted refresh token of the OpenID provider; null if there is none.';
      COMMENT ON COLUMN sign_in.idp_checked_at IS 'When the OpenID provider last confirmed the person.';
      COMMENT ON COLUMN sign_in.renewing_until IS 'Until when a process that is asking the OpenID provider is waited for; null: none is.';
      COMMENT ON COLUMN sign_in.spent_refused_at IS 'When a refresh token that had been used before was last rejected; null: never.';

      CREATE TABLE refresh_token (
        digest bytea CONSTRAINT refresh_token_pkey PRIMARY KEY,
        sign_in_id uuid NOT NULL CONSTRAINT refresh_token_sign_in_id_fkey REFERENCES sign_in (id) ON DELETE CASCADE,
        issued_at timestamptz NOT NULL DEFAULT now(),
        used_at timestamptz
      );
      CREATE INDEX refresh_token_sign_in_id_idx ON refresh_token (sign_in_id);
      CREATE INDEX refresh_token_used_idx ON refresh_token (used_at) WHERE used_at IS NOT NULL;
      COMMENT ON TABLE refresh_token IS 'Refresh tokens of sign-ins, of which only digests are stored.';
      COMMENT ON COLUMN refresh_token.digest IS 'SHA-256 of the token.';
      COMMENT ON COLUMN refresh_token.used_at IS 'When it was first used. It may be used again for a minute, and gives the same tokens.';

      CREATE TABLE device_request (
        id uuid CONSTRAINT device_request_pkey PRIMARY KEY,
        device_digest bytea NOT NULL CONSTRAINT device_request_device_digest_key UNIQUE,
        user_code_digest bytea NOT NULL CONSTRAINT device_request_user_code_digest_key UNIQUE,
        surface text NOT NULL,
        client_ip inet,
        client_network text NOT NULL,
        program text,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz NOT NULL,
        last_poll_at timestamptz,
        interval_s int NOT NULL,
        state text NOT NULL DEFAULT 'pending',
        opened_at timestamptz,
        person_id uuid CONSTRAINT device_request_person_id_fkey REFERENCES person (id),
        team_ids uuid[],
        approval_digest bytea,
        idp_sid text,
        idp_refresh bytea,
        key_id uuid CONSTRAINT device_request_key_id_fkey REFERENCES gateway_key (id),
        redeemed_at timestamptz,
        sign_in_id uuid CONSTRAINT device_request_sign_in_id_fkey REFERENCES sign_in (id) ON DELETE CASCADE,
        CONSTRAINT device_request_state_check CHECK (state IN ('pending', 'approved', 'denied', 'redeemed'))
      );
      CREATE INDEX device_request_network_idx ON device_request (client_network, created_at);
      CREATE INDEX device_request_expires_idx ON device_request (expires_at);
      CREATE INDEX device_request_person_idx ON device_request (person_id) WHERE person_id IS NOT NULL;
      CREATE INDEX device_request_approval_idx ON device_request (approval_digest) WHERE approval_digest IS NOT NULL;
      COMMENT ON TABLE device_request IS 'Requests of clients to be signed in, which a person confirms in a browser.';
      COMMENT ON COLUMN device_request.device_digest IS 'SHA-256 of the code that the client polls with.';
      COMMENT ON COLUMN device_request.user_code_digest IS 'Keyed digest of the code that the person types.';
      COMMENT ON COLUMN device_request.surface IS 'The client, as it calls itself.';
      COMMENT ON COLUMN device_request.client_ip IS 'Address of the client, as REQUEST_LOG_CLIENT says.';
      COMMENT ON COLUMN device_request.client_network IS 'Keyed digest of the network of the client, to limit the requests of one.';
      COMMENT ON COLUMN device_request.program IS 'User-Agent of the client, as REQUEST_LOG_CLIENT says.';
      COMMENT ON COLUMN device_request.interval_s IS 'Seconds between two polls.';
      COMMENT ON COLUMN device_request.state IS 'pending, approved, denied or redeemed.';
      COMMENT ON COLUMN device_request.opened_at IS 'When its code was first typed; null: it has not been.';
      COMMENT ON COLUMN device_request.person_id IS 'Who signed in at the OpenID provider with this code last.';
      COMMENT ON COLUMN device_request.team_ids IS 'Teams that this person may choose.';
      COMMENT ON COLUMN device_request.approval_digest IS 'SHA-256 of what the browser of this person must show to confirm it.';
      COMMENT ON COLUMN device_request.idp_sid IS 'Session at the OpenID provider; null if the provider names none.';
      COMMENT ON COLUMN device_request.idp_refresh IS 'Encrypted refresh token of the OpenID provider; null if there is none.';
      COMMENT ON COLUMN device_request.key_id IS 'The key of the person in the team that they chose.';

      -- In the order of key look-ups: a look-up that waits for the second must not hold the first.
      LOCK TABLE gateway_key_secret, gateway_key IN ACCESS EXCLUSIVE MODE;
      ALTER TABLE gateway_key
        ADD person_id uuid CONSTRAINT gateway_key_person_id_fkey REFERENCES person (id),
        ADD origin text NOT NULL DEFAULT 'manual',
        ADD CONSTRAINT gateway_key_origin_check CHECK (origin IN ('manual', 'sign_in')),
        ADD CONSTRAINT gateway_key_person_check CHECK (origin <> 'sign_in' OR person_id IS NOT NULL);
      CREATE UNIQUE INDEX gateway_key_sign_in_key ON gateway_key (person_id, team_id)
        WHERE origin = 'sign_in' AND revoked_at IS NULL;
      CREATE INDEX gateway_key_person_idx ON gateway_key (person_id) WHERE person_id IS NOT NULL;
      COMMENT ON COLUMN gateway_key.person_id IS 'The person whose it is; null for other keys.';
      COMMENT ON COLUMN gateway_key.origin IS 'manual: somebody created it; sign_in: it was created for the tokens of a person, at their first sign-in.';

      ALTER TABLE gateway_key_secret
        ADD sign_in_id uuid CONSTRAINT gateway_key_secret_sign_in_id_fkey REFERENCES sign_in (id) ON DELETE CASCADE,
        ADD CONSTRAINT gateway_key_secret_sign_in_check CHECK ((kind = 'sign_in') = (sign_in_id IS NOT NULL));
      CREATE INDEX gateway_key_secret_sign_in_idx ON gateway_key_secret (sign_in_id) WHERE sign_in_id IS NOT NULL;
      COMMENT ON COLUMN gateway_key_secret.sign_in_id IS 'The sign-in that a token was issued to, and ends with.';

      ALTER TABLE team ADD sign_in jsonb, ADD claude_code jsonb;
      COMMENT ON COLUMN team.sign_in IS 'What keys of people who sign in from a client allow; null: nobody can.';
      COMMENT ON COLUMN team.claude_code IS 'Settings that Claude Code gets from the gateway; null for none.';

      -- Once for all tokens that end with it, as for trusts.
      CREATE TRIGGER person_changed AFTER UPDATE OF ended_at ON person
        FOR EACH ROW WHEN (NEW.ended_at IS DISTINCT FROM OLD.ended_at) EXECUTE FUNCTION count_change('keys');
      CREATE TRIGGER sign_in_changed AFTER UPDATE OF ended_at ON sign_in
        FOR EACH ROW WHEN (NEW.ended_at IS DISTINCT FROM OLD.ended_at) EXECUTE FUNCTION count_change('keys');
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DELETE FROM gateway_key_secret WHERE kind = 'sign_in';
      ALTER TABLE team DROP sign_in, DROP claude_code;
      ALTER TABLE gateway_key_secret DROP sign_in_id;
      ALTER TABLE gateway_key DROP person_id, DROP origin;
      DROP TABLE device_request, refresh_token, sign_in, person;
    `);
  }
}
