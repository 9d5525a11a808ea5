import { GatewayError } from '../errors/gateway-error.js';
import { isWellFormedKey, shownPrefix } from '../keys/key-secret.js';

/** Headers in which Anthropic, Azure and Google clients send a key, in the order they are checked. */
const KEY_HEADERS = ['x-api-key', 'api-key', 'x-goog-api-key'] as const;

/** One Bearer token, RFC 6750 2.1; the scheme is case-insensitive (RFC 9110 11.1). */
const BEARER = /^Bearer ([^\s]+)$/i;

/**
 * Reads the credential of a request from its flat raw headers. If `Authorization` is present, it is the only header used,
 * so that no second header can bypass a check of another hop.
 *
 * @returns the token; null if the request has none or a malformed one
 * @throws GatewayError invalid_request if a key header is repeated or two of them differ
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
      throw new GatewayError('invalid_request', { message: `The header ${name} is repeated. Send it once.` });
    found[at] = raw[i + 1];
  }
  if (authorizationCount > 1)
    throw new GatewayError('invalid_request', { message: 'Authorization is repeated. Send it once.' });
  if (authorization !== undefined) return BEARER.exec(authorization)?.[1] ?? null;
  const values = found.filter((value) => value !== undefined);
  if (values.some((value) => value !== values[0])) {
    throw new GatewayError('invalid_request', {
      message: 'Two key headers have different keys. Send one key.',
    });
  }
  return values[0] || null;
}

/** Headers that may carry a key. */
const CREDENTIAL_HEADER = /^(?:authorization|x-api-key|api-key|x-goog-api-key)$/i;

/**
 * Describes the key of a request for the log: its prefix, `malformed` if it is not a single well-formed key, or `none`.
 * It does not check whether the key exists.
 *
 * @param raw flat raw headers
 */
export function keyLabel(raw: readonly string[]): string {
  let key: string | null = null;
  try {
    key = readCredential(raw);
  } catch {
    return 'malformed';
  }
  if (key !== null && isWellFormedKey(key)) return shownPrefix(key);
  return raw.some((name, i) => i % 2 === 0 && CREDENTIAL_HEADER.test(name)) ? 'malformed' : 'none';
}
