import type { LogRow } from '../request-log/columns.js';
import { startIso } from '../request-log/column-domains.js';
import { isStorable } from './stored-response.js';

/** Lifetime of a record, from its claim. */
export const LIFE = '24 hours';

/** A record that Postgres has lost. */
export interface LostRecord {
  readonly id: Buffer;
  readonly callId: string;
  readonly keyId: string;
}

/** Outcomes after which a duplicate request may run the call: its record was removed. */
const RELEASED = new Set<LogRow['outcome']>(['upstream_error', 'upstream_timeout', 'truncated', 'retried']);

/** The records of calls that have ended, and that no duplicate request may run again. */
export function recordsOf(rows: readonly LogRow[]): LostRecord[] {
  // One statement must not contain a record twice. The later call has it.
  const records = new Map<string, LostRecord>();
  for (const { claim, key_id: keyId, call_id, id, outcome, status } of rows) {
    const isReleased = RELEASED.has(outcome) || (status !== null && !isStorable(status));
    if (claim === undefined || isReleased) continue;
    records.set(claim, { id: Buffer.from(claim, 'base64url'), keyId, callId: call_id ?? id });
  }
  return [...records.values()];
}

/**
 * Inserts records that Postgres has lost, with their life from the start of the call. An expired one that was not removed
 * yet is replaced, as by a claim. Of two calls with one ID, the one that is there stays: neither runs again.
 *
 * @param lease until when
 */
const putBack = (lease: string, where: string) => `
  INSERT INTO idempotency_record AS old (id, key_id, call_id, lease_until, expires_at)
  SELECT id, key_id, call_id, ${lease}, expires_at
  FROM (
    SELECT id, key_id, call_id, started_at + interval '${LIFE}' AS expires_at
    FROM unnest($1::bytea[], $2::uuid[], $3::uuid[], $4::timestamptz[]) AS l (id, key_id, call_id, started_at)
  ) AS lost
  WHERE ${where}
  ON CONFLICT (id) DO UPDATE
  SET key_id = EXCLUDED.key_id, call_id = EXCLUDED.call_id, answer = NULL, stored_bytes = 0,
      lease_until = EXCLUDED.lease_until, expires_at = EXCLUDED.expires_at
  WHERE old.expires_at <= now() AND old.lease_until <= now()`;

/** Of calls that have ended: their outcome is unknown, because their response is lost. */
const ABANDONED = putBack(`'-infinity'`, 'expires_at > now()');

/** Of calls under way. @param leaseMs of the lease that they get */
export function putBackHeld(
  lost: readonly LostRecord[],
  leaseMs: number,
): { text: string; values: unknown[] } {
  return { text: putBack(`now() + interval '${leaseMs} ms'`, 'true'), values: valuesOf(lost) };
}

/** Of calls that have ended: their response is lost, so that their outcome is unknown. */
export function putBackAbandoned(lost: readonly LostRecord[]): { text: string; values: unknown[] } {
  return { text: ABANDONED, values: valuesOf(lost) };
}

function valuesOf(lost: readonly LostRecord[]): unknown[] {
  return [
    lost.map(({ id }) => id),
    lost.map(({ keyId }) => keyId),
    lost.map(({ callId }) => callId),
    lost.map(({ callId }) => startIso(callId)),
  ];
}
