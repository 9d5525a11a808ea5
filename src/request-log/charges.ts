import { CHARGE_COLUMNS, COLUMNS, type LogRow } from './columns.js';
import { COST_COLUMNS, costOf, IS_UNKNOWN_SQL, KNOWN_NOW_SQL, UPDATED_NOW } from './row-cost.js';

/** What a call has reserved of budgets. Null for each kind of budget that does not apply to it. */
export interface Reservation {
  /** Decimal in USD. */
  readonly usd: string | null;
  readonly tokens: number | null;
  /** Keyed hash of the end user; null if no budget per end user applies. */
  readonly subject: string | null;
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
  return `
    guarded AS (${guard}),
    before AS (
      SELECT r.charge_usd, r.charge_tokens FROM request_log r
      WHERE r.started_at = $2::timestamptz AND r.id = $1::uuid AND ${IS_UNKNOWN_SQL} AND EXISTS (SELECT FROM guarded)
      FOR UPDATE),
    corrected AS (
      UPDATE request_log AS r
      SET ${set.join(', ')}, ${KNOWN_NOW_SQL},
          charge_usd = CASE WHEN r.charge_usd IS NOT NULL THEN COALESCE($${charge}::numeric, r.charge_usd) END,
          charge_tokens = CASE WHEN r.charge_tokens IS NOT NULL THEN COALESCE($${charge + 1}::bigint, r.charge_tokens) END,
          ${UPDATED_NOW}
      FROM before
      WHERE r.started_at = $2::timestamptz AND r.id = $1::uuid
      RETURNING r.key_id, r.team_id, r.limit_subject, r.started_at,
                r.charge_usd - before.charge_usd AS charge_usd, r.charge_tokens - before.charge_tokens AS charge_tokens)`;
}

/** How many values correctedRow() has. A guard may have further ones after them. */
export const CORRECTION_VALUES = SETTLED.length + 4;

/**
 * The values of correctedRow().
 *
 * @param row its ID, its start, its model, its usage and its cost
 * @param usd what it is charged against budgets in USD; null: as before
 * @param tokens the same in tokens
 */
export function valuesOfCorrection(
  row: Readonly<LogRow>,
  usd: string | null,
  tokens: number | null,
): unknown[] {
  return [row.id, row.started_at, ...SETTLED.map((name) => row[name]), usd, tokens];
}
