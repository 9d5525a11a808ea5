import type { ClientBase } from 'pg';
import { CHARGE_COLUMNS } from './column-groups/charge-columns.js';
import type { LogRow } from './columns.js';
import { costOf } from './row-cost.js';

/** What a call has reserved of budgets. Null for each kind of budget that does not apply to it. */
export interface Reservation {
  /** Decimal in USD. */
  readonly usd: string | null;
  readonly tokens: number | null;
  /** Keyed hash of the end user; null if no budget per end user applies. */
  readonly subject: string | null;
}

/** The keeper of budgets in this process. The log writer notifies it when charges have become part of what is spent. */
export interface ChargeKeeper {
  /** These rows, with their charges, are in Postgres; or Postgres rejected them, and they never will be. */
  written(rows: readonly LogRow[]): void;
  /** No further row is written by this process. Never rejects. */
  stopped(): Promise<void>;
}

/** The request journals what it has reserved: an interrupted call is charged that. */
export function setReservation(row: LogRow, { usd, tokens, subject }: Reservation): void {
  row.charge_usd = CHARGE_COLUMNS.charge_usd.toDomain(usd);
  row.charge_tokens = CHARGE_COLUMNS.charge_tokens.toDomain(tokens);
  row.limit_subject = CHARGE_COLUMNS.limit_subject.toDomain(subject, null);
}

/** The charges of a row: USD as a decimal, and tokens. */
export function chargesOf(row: Readonly<LogRow>): { usd: string | null; tokens: number | null } {
  return { usd: row.charge_usd, tokens: row.charge_tokens };
}

/**
 * Turns what was reserved into the charge, where the cost or the tokens of the call are known. A call whose usage is
 * unknown or partial keeps its reservation as an estimate, or what is known if that is more, unless it cannot have cost
 * anything: the provider rejected it, it never reached the provider, or its response was a stored one.
 *
 * @returns false if the row is charged nothing because no budget applies to it
 */
export function finalizeCharge(row: LogRow): boolean {
  if (row.charge_usd === null && row.charge_tokens === null) return false;
  if (row.charge_usd !== null)
    row.charge_usd = isFree(row)
      ? '0'
      : ((isUsagePartial(row) ? null : costOf(row)) ?? (isRejected(row) ? '0' : row.charge_usd));
  if (row.charge_tokens !== null) {
    const known = (row.prompt_tokens ?? 0) + (row.completion_tokens ?? 0);
    row.charge_tokens = usedTokens(row) ?? Math.max(row.charge_tokens, known);
  }
  return true;
}

/** The tokens that a call is charged; null if they are not known. */
export function usedTokens(row: Readonly<LogRow>): number | null {
  if (isFree(row)) return 0;
  if (isUsagePartial(row)) return null;
  const { prompt_tokens: input, completion_tokens: output } = row;
  if (input !== null) return input + (output ?? 0);
  return isRejected(row) ? 0 : null;
}

function isFree({ outcome, error_code }: LogRow): boolean {
  if (outcome === 'replayed' || outcome === 'cached') return true;
  return error_code === 'upstream_unreachable' || error_code === 'provider_credential_unavailable';
}

/**
 * The call was broken off after the provider had reported its input, and before its output: a stream of Anthropic does so
 * in its first event. What it cost is not known.
 */
function isUsagePartial({ outcome, completion_tokens }: LogRow): boolean {
  return outcome !== 'completed' && completion_tokens === null;
}

/** The provider responded with an error, and reported no usage. */
function isRejected({ outcome, status, prompt_tokens, completion_tokens }: LogRow): boolean {
  return (
    (outcome === 'completed' || outcome === 'retried') &&
    (status ?? 0) >= 400 &&
    prompt_tokens === null &&
    completion_tokens === null
  );
}

/** Raises what a call has reserved to what it has used at least. @param usd with nine decimal places; null: not known */
export function raiseReservation(row: LogRow, usd: string | null, tokens: number): void {
  if (usd !== null && row.charge_usd !== null && Number(usd) > Number(row.charge_usd)) row.charge_usd = usd;
  if (row.charge_tokens !== null && tokens > row.charge_tokens) row.charge_tokens = tokens;
}

/** The start of the period of a rule `r` that holds `at`; `total` has one period. */
const startOfPeriod = (at: string) =>
  `CASE r.period WHEN 'total' THEN to_timestamp(0) ELSE date_trunc(r.period, ${at}, r.time_zone) END`;

/** Above every budget; a meter stays there. */
const MOST = '4000000000000000000';

/**
 * Adds charges to what is spent. `charged` has one row for each new row of the log. They are added up first, so that the
 * rules are looked up by their owners a few times, not for each row; periods begin at a quarter of an hour in every time
 * zone. A meter that another statement has locked is waited for; all statements lock meters in the order of their
 * primary key.
 */
function settlement(charged: string): string {
  return `
    INSERT INTO limit_meter AS m (rule_id, subject, window_start, spent)
    SELECT rule_id, subject, window_start, LEAST(sum(amount), ${MOST})::bigint
    FROM (
      SELECT r.id AS rule_id, CASE WHEN r.scope = o.scope THEN '' ELSE c.limit_subject END AS subject,
             ${startOfPeriod('c.quarter')} AS window_start,
             CASE r.resource WHEN 'usd' THEN c.usd * 1000000000 ELSE c.tokens END AS amount
      FROM (
        SELECT key_id, team_id, limit_subject, date_bin('15 minutes', started_at, to_timestamp(0)) AS quarter,
               sum(charge_usd) AS usd, sum(charge_tokens) AS tokens
        FROM (${charged}) new
        GROUP BY key_id, team_id, limit_subject, quarter
      ) c
      CROSS JOIN LATERAL (VALUES (c.key_id, 'key'), (c.team_id, 'team')) o (id, scope)
      JOIN limit_rule r ON r.scope_id = o.id AND r.scope IN (o.scope, o.scope || '_end_user')
      WHERE r.period IN ('day', 'week', 'month', 'total')
    ) charge
    WHERE amount > 0 AND subject IS NOT NULL
    GROUP BY rule_id, subject, window_start
    ORDER BY rule_id, subject, window_start
    ON CONFLICT (rule_id, subject, window_start)
    DO UPDATE SET spent = LEAST(m.spent::numeric + EXCLUDED.spent, ${MOST})::bigint`;
}

const CHARGED = 'id, key_id, team_id, started_at, charge_usd, charge_tokens, limit_subject';

/**
 * An INSERT into request_log that also settles the rows that it newly inserts, in the same statement.
 *
 * @param updatedAt a column that only updates set. A row that was there before has it, or is not returned at all
 */
export function withSettlement(insert: string, updatedAt: string): string {
  return `WITH written AS (${insert} RETURNING ${CHARGED}, ${updatedAt} AS updated_at)
    ${settlement('SELECT * FROM written WHERE updated_at IS NULL')}`;
}

/** The same INSERT, and its new rows for settleEach(). */
export function returningCharged(insert: string, updatedAt: string): string {
  return `WITH written AS (${insert} RETURNING ${CHARGED}, ${updatedAt} AS updated_at)
    SELECT id, started_at FROM written WHERE updated_at IS NULL`;
}

const SETTLE_ONE = settlement('SELECT * FROM request_log WHERE started_at = $1 AND id = $2');

/**
 * Settles rows that the current transaction has inserted, one by one. For rows whose settlement failed as a whole: the
 * log has priority.
 *
 * @returns the errors of rows that could not be settled
 */
export async function settleEach(
  client: ClientBase,
  rows: readonly { id: string; started_at: Date }[],
): Promise<Map<string, unknown>> {
  const failed = new Map<string, unknown>();
  for (const { id, started_at } of rows) {
    await client.query('SAVEPOINT settle');
    try {
      await client.query(SETTLE_ONE, [started_at, id]);
    } catch (error) {
      await client.query('ROLLBACK TO SAVEPOINT settle');
      failed.set(id, error);
    }
    await client.query('RELEASE SAVEPOINT settle');
  }
  return failed;
}

/** Returns what a process run held of limits: it has ended, and its rows are in Postgres. @param run its UUID */
export async function forgetHolds(
  client: { query(text: string, values: unknown[]): Promise<unknown> },
  run: string,
): Promise<void> {
  await client.query('SELECT limit_forget($1)', [run]);
}
