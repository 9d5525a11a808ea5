import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Tokens: secrets of a key that are issued for a short time, and trusts, which say whose identity tokens are exchanged for
 * them. Replicas of the version before know no tokens, so trusts are created when all replicas are of this one.
 */
export class Trusts1798000390000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE trust (
        id uuid CONSTRAINT trust_pkey PRIMARY KEY,
        name text NOT NULL CONSTRAINT trust_name_key UNIQUE,
        key_id uuid NOT NULL CONSTRAINT trust_key_id_fkey REFERENCES gateway_key (id),
        preset text NOT NULL,
        issuer text NOT NULL,
        audience text NOT NULL,
        jwks jsonb,
        claims jsonb NOT NULL,
        any_ref boolean NOT NULL DEFAULT false,
        cidrs cidr[],
        token_minutes int NOT NULL,
        longest_jwt_minutes int NOT NULL,
        max_live int NOT NULL,
        enabled boolean NOT NULL DEFAULT true,
        created_at timestamptz NOT NULL DEFAULT now(),
        last_used_at timestamptz,
        version int NOT NULL DEFAULT 1
      );
      CREATE INDEX trust_key_id_idx ON trust (key_id);
      COMMENT ON TABLE trust IS 'Issuers whose identity tokens are exchanged for tokens of a key, and on what conditions.';
      COMMENT ON COLUMN trust.preset IS 'github, gitlab, kubernetes, aws, google, azure or oidc: what its claims must name.';
      COMMENT ON COLUMN trust.issuer IS 'The iss of accepted identity tokens.';
      COMMENT ON COLUMN trust.audience IS 'The only aud of accepted identity tokens.';
      COMMENT ON COLUMN trust.jwks IS 'Public keys of the issuer; null: they are fetched from it.';
      COMMENT ON COLUMN trust.claims IS 'Values by claim: each claim must have one of its values.';
      COMMENT ON COLUMN trust.any_ref IS 'Whether any branch, tag, environment and workflow may use it.';
      COMMENT ON COLUMN trust.cidrs IS 'Networks that may use it; null: all.';
      COMMENT ON COLUMN trust.token_minutes IS 'Lifetime of a token in minutes.';
      COMMENT ON COLUMN trust.longest_jwt_minutes IS 'Longest lifetime of an accepted identity token in minutes.';
      COMMENT ON COLUMN trust.max_live IS 'How many of its tokens may work at a time.';
      COMMENT ON COLUMN trust.enabled IS 'If false, none of its tokens works.';
      COMMENT ON COLUMN trust.last_used_at IS 'When it last issued a token; updated with a delay of some seconds.';
      COMMENT ON COLUMN trust.version IS 'Increases with every change by an actor.';

      CREATE TABLE trust_failure (
        id uuid CONSTRAINT trust_failure_pkey PRIMARY KEY,
        trust_id uuid NOT NULL CONSTRAINT trust_failure_trust_id_fkey REFERENCES trust (id) ON DELETE CASCADE,
        at timestamptz NOT NULL DEFAULT now(),
        reason text NOT NULL,
        claims jsonb NOT NULL
      );
      CREATE INDEX trust_failure_trust_id_idx ON trust_failure (trust_id, id);
      COMMENT ON TABLE trust_failure IS 'The last rejected identity tokens of each trust that its issuer has signed.';
      COMMENT ON COLUMN trust_failure.reason IS 'What was not met.';
      COMMENT ON COLUMN trust_failure.claims IS 'iss, aud and the claims that its conditions name, and no others.';

      -- In the order of key look-ups: a look-up that waits for the second must not hold the first.
      LOCK TABLE gateway_key_secret, gateway_key IN ACCESS EXCLUSIVE MODE;
      ALTER TABLE gateway_key
        ADD tokens_valid_from timestamptz,
        ADD tokens_used_at timestamptz;
      COMMENT ON COLUMN gateway_key.tokens_valid_from IS 'Tokens that were issued before have ended; null: none has.';
      COMMENT ON COLUMN gateway_key.tokens_used_at IS 'When one of its tokens was last used; updated with a delay of some seconds.';
      CREATE TRIGGER gateway_key_tokens_ended AFTER UPDATE OF tokens_valid_from ON gateway_key
        FOR EACH ROW EXECUTE FUNCTION count_key_change();

      ALTER TABLE gateway_key_secret
        ADD kind text NOT NULL DEFAULT 'key',
        ADD subject text,
        ADD trust_id uuid CONSTRAINT gateway_key_secret_trust_id_fkey REFERENCES trust (id) ON DELETE CASCADE,
        ADD CONSTRAINT gateway_key_secret_kind_check CHECK (kind IN ('key', 'sign_in', 'exchange')),
        ADD CONSTRAINT gateway_key_secret_token_check
          CHECK ((kind = 'key') = (subject IS NULL) AND (kind = 'key' OR expires_at IS NOT NULL)),
        ADD CONSTRAINT gateway_key_secret_trust_check CHECK ((kind = 'exchange') = (trust_id IS NOT NULL));
      CREATE INDEX gateway_key_secret_static_idx ON gateway_key_secret (key_id) WHERE kind = 'key';
      CREATE INDEX gateway_key_secret_ended_idx ON gateway_key_secret (expires_at) WHERE kind <> 'key';
      CREATE INDEX gateway_key_secret_trust_idx ON gateway_key_secret (trust_id, expires_at) WHERE trust_id IS NOT NULL;
      COMMENT ON COLUMN gateway_key_secret.kind IS 'key: a static secret; sign_in, exchange: a token.';
      COMMENT ON COLUMN gateway_key_secret.subject IS 'Whom a token was issued to; null for static secrets.';
      COMMENT ON COLUMN gateway_key_secret.trust_id IS 'The trust that a token was issued by, and ends with.';
      COMMENT ON COLUMN gateway_key_secret.expires_at IS 'End of the grace after a rotation, null if it was not rotated; end of a token.';

      -- A new token changes no cached grant: nobody has used it before. Its end does, and so does the end of a trust, once for
      -- all of its tokens: one notification for each would keep the replicas busy.
      DROP TRIGGER gateway_key_secret_changed ON gateway_key_secret;
      CREATE TRIGGER gateway_key_secret_added AFTER INSERT ON gateway_key_secret
        FOR EACH ROW WHEN (NEW.kind = 'key') EXECUTE FUNCTION count_key_change();
      CREATE TRIGGER gateway_key_secret_changed AFTER UPDATE OF expires_at, digest, key_id ON gateway_key_secret
        FOR EACH ROW WHEN (NEW.kind = 'key') EXECUTE FUNCTION count_key_change();
      CREATE TRIGGER gateway_key_secret_removed AFTER DELETE ON gateway_key_secret
        FOR EACH ROW WHEN (OLD.kind = 'key') EXECUTE FUNCTION count_key_change();
      CREATE TRIGGER token_changed AFTER UPDATE OF expires_at, digest, key_id, trust_id, kind ON gateway_key_secret
        FOR EACH ROW WHEN (NEW.kind <> 'key') EXECUTE FUNCTION count_change('keys');
      -- Depth 0: not by the deletion of its trust, which has a trigger of its own.
      CREATE TRIGGER token_removed AFTER DELETE ON gateway_key_secret
        FOR EACH ROW WHEN (OLD.kind <> 'key' AND OLD.expires_at > now() AND pg_trigger_depth() = 0)
        EXECUTE FUNCTION count_change('keys');
      CREATE TRIGGER trust_changed AFTER UPDATE OF enabled OR DELETE ON trust
        FOR EACH ROW EXECUTE FUNCTION count_change('keys');
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    // The version before would take tokens for static secrets.
    await queryRunner.query(`
      DELETE FROM gateway_key_secret WHERE kind <> 'key';
      DROP TRIGGER gateway_key_secret_added ON gateway_key_secret;
      DROP TRIGGER gateway_key_secret_changed ON gateway_key_secret;
      DROP TRIGGER gateway_key_secret_removed ON gateway_key_secret;
      DROP TRIGGER token_changed ON gateway_key_secret;
      DROP TRIGGER token_removed ON gateway_key_secret;
      DROP INDEX gateway_key_secret_static_idx;
      ALTER TABLE gateway_key_secret DROP kind, DROP subject, DROP trust_id;
      COMMENT ON COLUMN gateway_key_secret.expires_at IS
        'End of the grace after a rotation; null if the secret was not rotated.';
      CREATE TRIGGER gateway_key_secret_changed AFTER INSERT OR UPDATE OF expires_at, digest, key_id OR DELETE
        ON gateway_key_secret FOR EACH ROW EXECUTE FUNCTION count_key_change();
      DROP TRIGGER gateway_key_tokens_ended ON gateway_key;
      ALTER TABLE gateway_key DROP tokens_valid_from, DROP tokens_used_at;
      DROP TABLE trust_failure, trust;
    `);
  }
}
