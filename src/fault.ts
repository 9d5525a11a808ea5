/** What is wrong with one field of an input, with the remedy. Never repeats the value: it may be a secret. */
export interface FaultDetail {
  field: string;
  message: string;
}

export type FaultKind = 'not_found' | 'conflict' | 'invalid';

/**
 * What a service answers to an order it cannot carry out. Services know neither statuses nor exit codes: the admin API
 * turns a Fault into 404, 409 or 400, the CLI into a message and exit code 1.
 */
export class Fault extends Error {
  override readonly name = 'Fault';

  constructor(
    readonly kind: FaultKind,
    message: string,
    readonly details: readonly FaultDetail[] = [],
  ) {
    super(message);
  }

  /** Something wrong with one field; the message names it. */
  static of(kind: FaultKind, field: string, message: string): Fault {
    return new Fault(kind, `${field}: ${message}`, [{ field, message }]);
  }
}
