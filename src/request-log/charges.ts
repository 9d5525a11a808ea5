import { CHARGE_COLUMNS } from './charge-columns.js';
import { dollarsOf } from './column-domains.js';
import { COLUMNS, type LogRow } from './columns.js';
import type { ResponseUsage } from '../bodies/usage/token-usage.js';
import {
  COST_COLUMNS,
  costOf,
  hasUsage,
  IS_UNKNOWN_SQL,
  isUnknown,
  KNOWN_NOW_SQL,
  setUsageFinal,
  UPDATED_NOW,
} from './row-cost.js';

/** What a call has reserved of budgets. Null for each kind of budget that does not apply to it. */
export interface Reservation {
  /** Billionths of a dollar. */
  readonly usd: number | null;
  readonly tokens: number | null;
  /** Keyed hash of the end user; null if no budget per end user applies. */
  readonly subject: string | null;
  /** Keyed hash of the session; null if no budget per session applies. */
  readonly session: string | null;
  readonly budgets: ChargedBudgets;
  /** False: a budget for some models counts the call, whatever model the rest of its request names. */
  readonly isModelKnown: boolean;
}

/** The budgets of a call. */
export interface ChargedBudgets {
  /** Those that count what is sent there, as the row of an attempt names them. @param model null: not known for certain */
  named(provider: string, model: string | null): string;
}

/** The request journals what it has reserved: an interrupted call is charged that. */
export function setReservation(
  row: LogRow,
  { usd, tokens, subject, session, budgets, isModelKnown }: Reservation,
  { provider, model }: { provider: string; model: string | null },
): void {
  row.charge_usd = dollarsOf(usd);
  row.charge_tokens = CHARGE_COLUMNS.charge_tokens.toDomain(tokens);
  row.limit_subject = CHARGE_COLUMNS.limit_subject.toDomain(subject, null);
  row.limit_session = CHARGE_COLUMNS.limit_session.toDomain(session, null);
  row.charge_rules = CHARGE_COLUMNS.charge_rules.toDomain(
    budgets.named(provider, isModelKnown ? model : null),
  );
}

/** The charges of a row: USD as a decimal, tokens, and the budgets that have them. */
export function chargesOf(row: Readonly<LogRow>): {
  usd: string | null;
  tokens: number | null;
  budgets: string | null;
} {
  return { usd: row.charge_usd, tokens: row.charge_tokens, budgets: row.charge_rules };
}

/**
 * Sets whether all usage of the call was read, once its other columns are set.
 *
 * @param isComplete the response has come to its end, which its client need not have seen
 */
export function setFinality(
  row: LogRow,
  { closing, extra, reportedCost }: Pick<ResponseUsage, 'closing' | 'extra' | 'reportedCost'>,
  isComplete: boolean,
): void {
  if (isUnbilled(row)) return setUsageFinal(row, null);
  // Tools were run that the usage leaves out; a cost that the provider reports has them.
  if (extra?.uncounted_tools !== undefined && reportedCost === null) return setUsageFinal(row, false);
  // What was counted from the request, or read from a whole document.
  const isDocument = closing === undefined && isComplete && row.streamed !== true && hasCounts(row);
  setUsageFinal(row, closing === 'event' || (closing === 'end' && isComplete) || isDocument);
}

/**
 * Turns what was reserved into the charge, where the cost or the tokens of the call are known. A call whose usage is not
 * final keeps its reservation as an estimate, or what is known if that is more. One that cannot have cost anything is charged
 * nothing: the provider rejected it, it never reached the provider, or its response was a stored one.
 *
 * @returns false if the row is charged nothing because no budget applies to it
 */
export function finalizeCharge(row: LogRow): boolean {
  if (row.charge_usd === null && row.charge_tokens === null) return false;
  if (row.charge_usd !== null)
    row.charge_usd = isUnbilled(row) ? '0' : ((isUnknown(row) ? null : costOf(row)) ?? row.charge_usd);
  if (row.charge_tokens !== null) {
    const known = (row.prompt_tokens ?? 0) + (row.completion_tokens ?? 0);
    row.charge_tokens = usedTokens(row) ?? Math.max(row.charge_tokens, known);
  }
  return true;
}

/** The tokens that a call is charged; null if they are not known. */
export function usedTokens(row: Readonly<LogRow>): number | null {
  if (isUnbilled(row)) return 0;
  const { prompt_tokens: input, completion_tokens: output } = row;
  return input === null || isUnknown(row) ? null : input + (output ?? 0);
}

/** The row of a call of which nothing was recorded after it was forwarded. */
export function setInterrupted(row: LogRow): void {
  setUsageFinal(row, isUnbilled(row) ? null : false);
}

/** Endpoints that bill nothing. */
const FREE_ENDPOINT =
  /\/(?:count_tokens|input_tokens|moderations|tokenize|files|uploads(?:\/[^/]+\/(?:parts|complete|cancel))?|cancel)$|:(?:countTokens|cancel)$/;
/** Where clients open WebSockets. */
const WEBSOCKET = /\/(?:realtime|responses)$|BidiGenerateContent/;
const SWITCHING_PROTOCOLS = 101;

/** There was nothing that a provider could have billed. */
function isUnbilled(row: Readonly<LogRow>): boolean {
  if (isFree(row)) return true;
  if (hasCounts(row)) return false;
  if (isRejected(row)) return true;
  const { method, path, status } = row;
  if (method === 'HEAD' || method === 'DELETE' || method === 'OPTIONS') return true;
  if (method === 'GET') return status === null ? !WEBSOCKET.test(path ?? '') : status !== SWITCHING_PROTOCOLS;
  return FREE_ENDPOINT.test(path ?? '');
}

function hasCounts(row: Readonly<LogRow>): boolean {
  return hasUsage(row) || costOf(row) !== null;
}

function isFree({ outcome, error_code }: LogRow): boolean {
  if (outcome === 'replayed' || outcome === 'cached') return true;
  return error_code === 'upstream_unreachable' || error_code === 'provider_credential_unavailable';
}

/** Statuses of calls that timed out, and so may have been worked on. */
const TIMED_OUT = [408, 504, 524];
/** The status is not the provider's, or it had the request in part only. */
const OF_GATEWAY = new Set(['upstream_error', 'upstream_timeout', 'interrupted', 'client_error']);

/** The provider responded with an error. */
function isRejected({ outcome, status }: LogRow): boolean {
  return !OF_GATEWAY.has(outcome) && (status ?? 0) >= 400 && !TIMED_OUT.includes(status!);
}

/** Raises what a call has reserved to what it has used at least. @param usd with nine decimal places; null: not known */
export function raiseReservation(row: LogRow, usd: string | null, tokens: number): void {
  if (usd !== null && row.charge_usd !== null && Number(usd) > Number(row.charge_usd)) row.charge_usd = usd;
  if (row.charge_tokens !== null && tokens > row.charge_tokens) row.charge_tokens = tokens;
}

const SETTLED = ['model', ...COST_COLUMNS] as const;

/**
 * Common table expressions that correct the row of a call whose usage was not known, once it is: `guarded` is the guard, and
 * `corrected` has the difference of its charges, as the charge of a row. It does nothing unless the guard returns a row.
 * Through the parent table, with the time of the update, as for late prices.
 *
 * @param guard a statement that returns a row once for each call: it may use $1, the ID of the call
 */
export function correctedRow(guard: string): string {
  const set = SETTLED.map((name, i) => {
    const value = `$${i + 3}::${COLUMNS[name].type}`;
    return `${name} = ${name === 'model' ? `COALESCE(r.model, ${value})` : value}`;
  });
  const charge = SETTLED.length + 3;
  const cost = `$${SETTLED.indexOf('cost_usd') + 3}::${COLUMNS.cost_usd.type}`;
  return `
    guarded AS (${guard}),
    before AS (
      SELECT r.charge_usd, r.charge_tokens FROM request_log r
      WHERE r.started_at = $2::timestamptz AND r.id = $1::uuid AND ${IS_UNKNOWN_SQL} AND EXISTS (SELECT FROM guarded)
      FOR UPDATE),
    corrected AS (
      UPDATE request_log AS r
      SET ${set.join(', ')}, ${KNOWN_NOW_SQL},
          charge_usd = CASE WHEN r.charge_usd IS NULL THEN NULL WHEN ${cost} IS NULL THEN GREATEST(r.charge_usd, $${charge}::numeric)
            ELSE $${charge}::numeric END,
          charge_tokens = CASE WHEN r.charge_tokens IS NOT NULL THEN COALESCE($${charge + 1}::bigint, r.charge_tokens) END,
          ${UPDATED_NOW}
      FROM before
      WHERE r.started_at = $2::timestamptz AND r.id = $1::uuid
      RETURNING r.key_id, r.team_id, r.limit_subject, r.limit_session, r.charge_rules, r.started_at,
                r.charge_usd - before.charge_usd AS charge_usd, r.charge_tokens - before.charge_tokens AS charge_tokens)`;
}

/** How many values correctedRow() has. A guard may have further ones after them. */
export const CORRECTION_VALUES = SETTLED.length + 4;

/**
 * The values of correctedRow().
 *
 * @param row its ID, its start, its model, its usage and its cost
 * @param usd what it is charged against budgets in USD: at least, if its cost is not known
 * @param tokens the same in tokens; null: as before
 */
export function valuesOfCorrection(row: Readonly<LogRow>, usd: string, tokens: number | null): unknown[] {
  return [row.id, row.started_at, ...SETTLED.map((name) => row[name]), usd, tokens];
}
