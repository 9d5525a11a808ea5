import type { Request } from 'express';
import type { KeyLookupService } from '../../auth/key-lookup.service.js';
import { GatewayError } from '../../errors/gateway-error.js';

/**
 * Goes on with a call if its key is still valid. Its body may have been awaited for long, and a revoked key must not be
 * used for requests that were begun before.
 *
 * @param rejected called with invalid_api_key, or with the error of the look-up
 */
export function ifConfirmed(
  keys: KeyLookupService,
  req: Request,
  rejected: (error: GatewayError) => void,
  proceed: () => void,
): void {
  const isValid = keys.isStillValid(req);
  if (isValid === true) proceed();
  else if (isValid === false) rejected(new GatewayError('invalid_api_key'));
  else isValid.then((valid) => (valid ? proceed() : rejected(new GatewayError('invalid_api_key'))), rejected);
}
