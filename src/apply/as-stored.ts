import { ServiceError } from '../errors/service-error.js';
import type { AsStored } from './apply.schema.js';

const NOTHING_STORED =
  'nothing is stored for it here, so give the secret itself: in a file as { env: NAME } or { file: PATH }';

/** @throws ServiceError invalid for what stays as it is stored, where nothing is */
export function given<T extends string | null>(value: T | AsStored, field: string): T {
  if (!isStored(value)) return value;
  throw ServiceError.of('invalid', field, NOTHING_STORED);
}

/** What a change has in place of a value: undefined if the stored one stays. */
export function changed<T extends string | null>(value: T | AsStored): T | undefined {
  return isStored(value) ? undefined : value;
}

function isStored<T extends string | null>(value: T | AsStored): value is AsStored {
  return typeof value === 'object' && value !== null;
}
