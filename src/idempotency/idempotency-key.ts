import { createHash } from 'node:crypto';
import { GatewayError } from '../errors/gateway-error.js';

const BARE = /^[\x21\x23-\x7e][\x21-\x7e]{0,254}$/;
/** A Structured Field string (RFC 9651 3.3.3), as the IETF draft writes the header. */
const QUOTED = /^"((?:[\x21\x23-\x5b\x5d-\x7e]|\\["\\])+)"$/;

/**
 * The value of an `Idempotency-Key` header: bare, as Stripe's clients send it, or in quotes, as
 * draft-ietf-httpapi-idempotency-key-header has it. Both name the same call.
 *
 * @param header as Node gives it: two lines are joined with a comma and a space, and so are no key
 * @throws GatewayError invalid_idempotency_key
 */
export function readIdempotencyKey(header: string): string {
  if (BARE.test(header)) return header;
  const value = QUOTED.exec(header)?.[1]!.replace(/\\(.)/g, '$1');
  if (value === undefined || value.length > 255) throw new GatewayError('invalid_idempotency_key');
  return value;
}

/** The scope of a key's value: the same value in another scope names another call. */
export interface CallScope {
  keyId: string;
  method: string;
  /** Raw request target, with its query. */
  target: string;
  /** Credentials of the caller that the provider gets: another caller must not get this one's response. */
  credentials: readonly string[];
}

/** The record's id. None of the parts can hold a NUL, so that no two scopes run into one. */
export function recordId({ keyId, method, target, credentials }: CallScope, value: string): Buffer {
  const parts = [keyId, method, target, value, ...credentials];
  return createHash('sha256').update(parts.join('\0')).digest();
}
