import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Teams, keys with their secrets, and the request log partitioned by UTC day. */
export class Initial1795000000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE team (
        id uuid CONSTRAINT team_pkey PRIMARY KEY,
        name text NOT NULL CONSTRAINT team_name_key UNIQUE,
        disabled boolean NOT NULL DEFAULT false,
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE TABLE gateway_key (
        id uuid CONSTRAINT gateway_key_pkey PRIMARY KEY,
        team_id uuid NOT NULL CONSTRAINT gateway_key_team_id_fkey REFERENCES team (id),
        name text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz,
        revoked_at timestamptz,
        disabled boolean NOT NULL DEFAULT false,
        providers text[],
        endpoints text NOT NULL DEFAULT 'inference'
          CONSTRAINT gateway_key_endpoints_check CHECK (endpoints IN ('inference', 'all')),
        idempotency text NOT NULL DEFAULT 'forward'
          CONSTRAINT gateway_key_idempotency_check CHECK (idempotency IN ('forward', 'replay')),
        CONSTRAINT gateway_key_team_id_name_key UNIQUE (team_id, name)
      );
      CREATE INDEX gateway_key_team_id_idx ON gateway_key (team_id);
      CREATE TABLE gateway_key_secret (
        id uuid CONSTRAINT gateway_key_secret_pkey PRIMARY KEY,
        key_id uuid NOT NULL CONSTRAINT gateway_key_secret_key_id_fkey REFERENCES gateway_key (id),
        digest bytea NOT NULL,
        prefix text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz,
        last_used_at timestamptz
      );
      CREATE UNIQUE INDEX gateway_key_secret_digest_key ON gateway_key_secret (digest);
      CREATE INDEX gateway_key_secret_key_id_idx ON gateway_key_secret (key_id);
      CREATE TABLE request_log (
        started_at timestamptz NOT NULL,
        id uuid NOT NULL,
        -- When Postgres got the row. Not now(), the start of the transaction: between that and the lock on this table a
        -- writer may wait, and an incremental export would have passed (requests/recorded-until.ts). Whole
        -- milliseconds, so that a value survives the way through JSON and JavaScript unchanged.
        recorded_at timestamptz NOT NULL DEFAULT date_trunc('milliseconds', clock_timestamp()),
        team_id uuid NOT NULL,
        key_id uuid NOT NULL,
        provider text NOT NULL,
        method text NOT NULL,
        path text,
        model text,
        streamed boolean NOT NULL,
        status smallint,
        outcome text NOT NULL,
        error_code text,
        request_bytes bigint,
        response_bytes bigint,
        ttfb_ms real,
        duration_ms real,
        prompt_tokens int,
        completion_tokens int,
        cached_tokens int,
        reasoning_tokens int,
        provider_request_id text,
        idempotency_key text,
        sdk_retry_count smallint,
        client_ip inet,
        user_agent text,
        CONSTRAINT request_log_pkey PRIMARY KEY (started_at, id)
      ) PARTITION BY RANGE (started_at);
      -- "The calls of this key (or team) in a time range, newest first": the equal column, then the order that is asked
      -- for, read backwards; calls of one millisecond are put in order by an incremental sort. (With id in them the
      -- indexes would be half as large again and pages no faster, measured with 5 million rows.) Filters on anything
      -- else go through the time range alone: each further index would cost every call, and none of provider, model,
      -- status and outcome narrows a range as far as key and team do.
      CREATE INDEX request_log_key_id_idx ON request_log (key_id, started_at);
      CREATE INDEX request_log_team_id_idx ON request_log (team_id, started_at);
      -- For exports of what came since the last one. Rows lie in the order in which they came, so that block ranges
      -- tell as much as a tree that is a thousand times as large; autosummarize keeps the newest range out of the scan.
      CREATE INDEX request_log_recorded_at_idx ON request_log USING brin (recorded_at)
        WITH (pages_per_range = 32, autosummarize = on);
      -- Catches rows of a day that has no partition yet, so that none is ever refused.
      CREATE TABLE request_log_default PARTITION OF request_log DEFAULT;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE request_log, gateway_key_secret, gateway_key, team');
  }
}
