/** The most attempts of a call. */
export const MAX_ATTEMPTS = 10;

/** Which attempt of which call a row is for. */
export interface Attempt {
  /** ID of the first attempt: the client's `x-gateway-request-id`. */
  readonly callId: string;
  /** From 1. */
  readonly number: number;
}

/**
 * The row ID of an attempt. It differs from the ID of the call in its last four bits, which are random, so that the
 * attempts of a call are found by primary key. The time in it stays: all attempts are in one partition, and count in
 * the same budget period.
 */
export function attemptId({ callId, number }: Attempt): string {
  const last = parseInt(callId.slice(-1), 16) ^ (number - 1);
  return callId.slice(0, -1) + last.toString(16);
}

/** The row IDs that the attempts of a call may have. */
export function attemptIds(callId: string): string[] {
  return Array.from({ length: MAX_ATTEMPTS }, (_, i) => attemptId({ callId, number: i + 1 }));
}
