/** What is wrong with one field of an input, with the remedy. Never repeats the value: it may be a secret. */
export interface ErrorDetail {
  field: string;
  message: string;
}

/** Why a service cannot do what it was asked. */
export type ServiceErrorKind = 'not_found' | 'conflict' | 'invalid' | 'forbidden' | 'upgrade_in_progress';

/**
 * Thrown by a service that cannot do what it was asked. Services do not choose statuses or exit codes: the admin API
 * turns a ServiceError into 404, 409, 400 or 403, the CLI into a message and exit code 1.
 */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';

  constructor(
    readonly kind: ServiceErrorKind,
    message: string,
    readonly details: readonly ErrorDetail[] = [],
  ) {
    super(message);
  }

  /** Something wrong with one field; the message names it. */
  static of(kind: ServiceErrorKind, field: string, message: string): ServiceError {
    return new ServiceError(kind, `${field}: ${message}`, [{ field, message }]);
  }
}
