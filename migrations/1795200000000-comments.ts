import type { MigrationInterface, QueryRunner } from 'typeorm';
import { comment, type Comments, commentOnRequestLog } from './comments.js';

/** A failed call. A client that disconnected is no error; nor is its row, which may hold a good status. */
const IS_ERROR = `(l.status >= 400 OR l.outcome NOT IN ('completed', 'replayed', 'client_aborted'))`;

/** As in requests/usage-query.ts. */
const LACKS_TOKENS = `l.method = 'POST' AND (l.status < 400 OR l.status IS NULL) AND l.outcome <> 'replayed'
  AND l.prompt_tokens IS NULL AND l.completion_tokens IS NULL`;

const sums = (more: string) => `
  count(*) AS calls,
  count(*) FILTER (WHERE ${IS_ERROR}) AS errors,
  ${more}
  COALESCE(sum(l.prompt_tokens), 0) AS prompt_tokens,
  COALESCE(sum(l.completion_tokens), 0) AS completion_tokens,
  COALESCE(sum(l.cached_tokens), 0) AS cached_tokens,
  COALESCE(sum(l.reasoning_tokens), 0) AS reasoning_tokens,
  COALESCE(sum(l.request_bytes), 0)::bigint AS request_bytes,
  COALESCE(sum(l.response_bytes), 0)::bigint AS response_bytes`;

const SUMS = sums(`count(*) FILTER (WHERE ${LACKS_TOKENS}) AS calls_without_tokens,`);
const SUMS_BEFORE = sums('');
const HOUR = `date_trunc('hour', l.started_at, 'UTC')`;
const HOUR_BEFORE = `date_trunc('hour', l.started_at AT TIME ZONE 'UTC')`;
const DAY = `(l.started_at AT TIME ZONE 'UTC')::date`;

/** A column in the middle and another type need a new view: CREATE OR REPLACE can only add columns at the end. */
function replaceViews(sums: string, hour: string): string {
  return `
    DROP VIEW IF EXISTS usage_by_team_day, usage_by_key_day, usage_by_model_day, errors_by_key_hour;
    CREATE VIEW usage_by_team_day AS
      SELECT ${DAY} AS day, t.name AS team, l.team_id, ${sums}
      FROM request_log l LEFT JOIN team t ON t.id = l.team_id
      GROUP BY 1, 2, 3;
    CREATE VIEW usage_by_key_day AS
      SELECT ${DAY} AS day, t.name AS team, k.name AS key, l.key_id, ${sums}
      FROM request_log l LEFT JOIN gateway_key k ON k.id = l.key_id LEFT JOIN team t ON t.id = k.team_id
      GROUP BY 1, 2, 3, 4;
    CREATE VIEW usage_by_model_day AS
      SELECT ${DAY} AS day, l.provider, l.model, ${sums}
      FROM request_log l
      GROUP BY 1, 2, 3;
    CREATE VIEW errors_by_key_hour AS
      SELECT ${hour} AS hour, t.name AS team, k.name AS key, l.key_id, l.provider, l.status, l.outcome, l.error_code,
        count(*) AS errors
      FROM request_log l LEFT JOIN gateway_key k ON k.id = l.key_id LEFT JOIN team t ON t.id = k.team_id
      WHERE ${IS_ERROR}
      GROUP BY 1, 2, 3, 4, 5, 6, 7, 8;`;
}

const VERSION = 'Increases with every change by an actor.';
const DAY_ABOUT = {
  day: 'UTC day. A filter on it reads every partition: for a long log, filter request_log.started_at.',
};
const SUMS_ABOUT = {
  errors: 'Calls with a status of 400 or above, or that the provider or the gateway did not complete.',
  calls_without_tokens:
    'Calls that may have used tokens although the provider reported none: they are missing from the sums of tokens.',
};

/** Creates the four views again as they read the log itself, with their comments. */
export async function createViewsOfRows(queryRunner: QueryRunner): Promise<void> {
  await queryRunner.query(replaceViews(SUMS, HOUR));
  for (const [name, comments] of Object.entries(COMMENTS))
    if (comments.kind === 'VIEW') await comment(queryRunner, name, comments);
}

/** Entities repeat those of their tables; a test compares them. */
const COMMENTS: Readonly<Record<string, Comments>> = {
  team: {
    kind: 'TABLE',
    about: 'Teams, to which gateway keys belong.',
    columns: { disabled: 'All keys of a disabled team are rejected.', version: VERSION },
  },
  gateway_key: {
    kind: 'TABLE',
    about: 'Gateway keys with their limits; their secrets are in gateway_key_secret.',
    columns: {
      name: 'Unique within the team.',
      expires_at: 'Null if the key never expires.',
      revoked_at: 'Null if the key is not revoked.',
      providers: 'Names of the providers it may use; null for all.',
      endpoints: 'inference: only the inference endpoints; all: every path.',
      idempotency: 'forward: Idempotency-Key is passed on; replay: repeated calls get the stored response.',
      version: VERSION,
    },
  },
  gateway_key_secret: {
    kind: 'TABLE',
    about: 'Secrets of gateway keys, of which only digests are stored. Rotation adds one.',
    columns: {
      digest: 'SHA-256 of the secret.',
      prefix: 'First characters of the secret, to recognise it.',
      expires_at: 'End of the grace after a rotation; null if the secret was not rotated.',
      last_used_at: 'Updated with a delay of some seconds.',
    },
  },
  provider: {
    kind: 'TABLE',
    about: 'Stored providers. The one of PROVIDER_URL is not among them.',
    columns: {
      url: 'Base URL without /v1.',
      auth: 'How the secret is sent: bearer, or the name of the header.',
      sealed_secret: 'The secret, encrypted with MASTER_KEY and bound to this row; null if it needs none.',
      is_default: 'Calls to /v1 go there, unless PROVIDER_URL is set.',
      enabled: 'Calls to a disabled provider are rejected.',
      version: VERSION,
    },
  },
  audit_log: {
    kind: 'TABLE',
    about: 'Who changed which team, key or provider. Rows are only inserted.',
    columns: {
      actor: 'admin-token, cli:<user of the operating system>, or start.',
      client_ip: 'Client address of the admin request; null for a command.',
      subject_name: 'Name of the object at the time of the change.',
      before: 'Previous values of what changed; null for a new object.',
      after: 'New values of what changed; null for a removed object.',
    },
  },
  idempotency_record: {
    kind: 'TABLE',
    about: 'Each Idempotency-Key in use, with the encrypted response of its call.',
    columns: {
      id: 'SHA-256 of gateway key, method, target and value.',
      call_id: 'The id of the row in request_log of the call that holds the claim.',
      answer: 'The encrypted response; null while the call runs, and for ever if its process died.',
      lease_until:
        'After this time, without a response, no process runs the call any more. -infinity: its outcome stays unknown.',
    },
  },
  change_counter: {
    kind: 'TABLE',
    about: 'Counts changes of keys and providers, so that every gateway notices them.',
    columns: {},
  },
  usage_by_team_day: {
    kind: 'VIEW',
    about: 'Sums by UTC day and team.',
    columns: { ...DAY_ABOUT, ...SUMS_ABOUT },
  },
  usage_by_key_day: {
    kind: 'VIEW',
    about: 'Sums by UTC day and key.',
    columns: { ...DAY_ABOUT, ...SUMS_ABOUT },
  },
  usage_by_model_day: {
    kind: 'VIEW',
    about: 'Sums by UTC day, provider and model.',
    columns: { ...DAY_ABOUT, ...SUMS_ABOUT },
  },
  errors_by_key_hour: {
    kind: 'VIEW',
    about: 'Failed calls by hour, key, provider, status, outcome and error code.',
    columns: { hour: 'Start of the UTC hour.', errors: SUMS_ABOUT.errors },
  },
};

/**
 * Comments on tables, views and columns. The views count the calls without tokens, and their hour is a point in time, as
 * reporting tools expect. Views of somebody's own that read these four must be dropped first.
 */
export class Comments1795200000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(replaceViews(SUMS, HOUR));
    for (const [name, comments] of Object.entries(COMMENTS)) await comment(queryRunner, name, comments);
    await commentOnRequestLog(queryRunner);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await commentOnRequestLog(queryRunner, true);
    for (const [name, comments] of Object.entries(COMMENTS)) await comment(queryRunner, name, comments, true);
    await queryRunner.query(replaceViews(SUMS_BEFORE, HOUR_BEFORE));
  }
}
