import { GatewayError } from '../errors/gateway-error.js';

/** Where Anthropic, Azure and Google clients put a key, in the order in which they are looked at. */
const KEY_HEADERS = ['x-api-key', 'api-key', 'x-goog-api-key'] as const;

/** One Bearer token, RFC 6750 2.1; the scheme is case-insensitive (RFC 9110 11.1). */
const BEARER = /^Bearer ([^\s]+)$/i;

/**
 * The credential of a request, from its flat raw headers: `Authorization` decides alone when it is there, so that no
 * second header can be smuggled behind one that another hop looked at.
 *
 * @returns the token, or null when the request carries none or a malformed one
 * @throws GatewayError invalid_request when a key header is repeated or two of them differ
 */
export function readCredential(raw: readonly string[]): string | null {
  let authorization: string | undefined;
  let authorizationCount = 0;
  const found: (string | undefined)[] = [undefined, undefined, undefined];
  for (let i = 0; i < raw.length; i += 2) {
    const length = raw[i]!.length;
    if (length !== 13 && length !== 9 && length !== 7 && length !== 14) continue;
    const name = raw[i]!.toLowerCase();
    if (name === 'authorization') {
      authorization = raw[i + 1];
      authorizationCount++;
      continue;
    }
    const at = (KEY_HEADERS as readonly string[]).indexOf(name);
    if (at === -1) continue;
    if (found[at] !== undefined)
      throw new GatewayError('invalid_request', { message: `The header ${name} is repeated.` });
    found[at] = raw[i + 1];
  }
  if (authorizationCount > 1)
    throw new GatewayError('invalid_request', { message: 'Authorization is repeated.' });
  if (authorization !== undefined) return BEARER.exec(authorization)?.[1] ?? null;
  const values = found.filter((value) => value !== undefined);
  if (values.some((value) => value !== values[0])) {
    throw new GatewayError('invalid_request', { message: 'Two key headers carry different keys.' });
  }
  return values[0] || null;
}
