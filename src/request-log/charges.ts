import { CHARGE_COLUMNS, type LogRow } from './columns.js';
import { costOf } from './row-cost.js';

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
