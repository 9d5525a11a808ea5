import { GatewayError } from '../errors/gateway-error.js';
import { isWellFormedKey, shownPrefix } from '../keys/key-secret.js';

/** Headers in which Anthropic, Azure and Google clients send a key, in the order they are checked. */
const KEY_HEADERS = ['x-api-key', 'api-key', 'x-goog-api-key'] as const;

/** Where the gateway key stands beside a credential of the caller's own, which may be meant for the provider. */
const GATEWAY_KEY_HEADER = 'x-gateway-key';

/** Browsers cannot set headers of a WebSocket: OpenAI's clients send the key in this subprotocol. */
export const SUBPROTOCOL_KEY = 'openai-insecure-api-key.';

/** One Bearer token, RFC 6750 2.1; the scheme is case-insensitive (RFC 9110 11.1). */
const BEARER = /^Bearer ([^\s]+)$/i;

/**
 * Reads the credential of a request from its flat raw headers. If `x-gateway-key` is present, it is the only header used;
 * else if `Authorization` is, so that no second header can bypass a check of another hop.
 *
 * @returns the token; null if the request has none or a malformed one
 * @throws GatewayError invalid_request if a key header is repeated or two of them differ
 */
export function readCredential(raw: readonly string[]): string | null {
  let gatewayKey: string | undefined;
  let authorization: string | undefined;
  let authorizationCount = 0;
  let repeatedName: string | null = null;
  let subprotocols = '';
  const found: (string | undefined)[] = [undefined, undefined, undefined];
  for (let i = 0; i < raw.length; i += 2) {
    const length = raw[i]!.length;
    if (length !== 13 && length !== 9 && length !== 7 && length !== 14 && length !== 22) continue;
    const name = raw[i]!.toLowerCase();
    if (name === 'authorization') {
      authorization = raw[i + 1];
      authorizationCount++;
      continue;
    }
    if (name === GATEWAY_KEY_HEADER) {
      if (gatewayKey !== undefined) throw repeated(name);
      gatewayKey = raw[i + 1];
      continue;
    }
    if (name === 'sec-websocket-protocol') {
      subprotocols += `${raw[i + 1]},`;
      continue;
    }
    const at = (KEY_HEADERS as readonly string[]).indexOf(name);
    if (at === -1) continue;
    if (found[at] !== undefined) repeatedName ??= name;
    found[at] = raw[i + 1];
  }
  if (gatewayKey !== undefined) return gatewayKey || null;
  if (repeatedName !== null) throw repeated(repeatedName);
  if (authorizationCount > 1)
    throw new GatewayError('invalid_request', { message: 'Authorization is repeated. Send it once.' });
  if (authorization !== undefined) return BEARER.exec(authorization)?.[1] ?? null;
  const values = found.filter((value) => value !== undefined);
  if (values.some((value) => value !== values[0])) {
    throw new GatewayError('invalid_request', {
      message: 'Two key headers have different keys. Send one key.',
    });
  }
  return values[0] || (subprotocols === '' ? null : keyOfSubprotocols(subprotocols));
}

/** The key in a list of subprotocols. A request has one key, so two different ones are none. */
function keyOfSubprotocols(list: string): string | null {
  const keys = subprotocolKeys(list);
  return new Set(keys).size === 1 ? keys[0]! || null : null;
}

function subprotocolKeys(list: string): string[] {
  return list
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item.startsWith(SUBPROTOCOL_KEY))
    .map((item) => item.slice(SUBPROTOCOL_KEY.length));
}

function repeated(name: string): GatewayError {
  return new GatewayError('invalid_request', { message: `The header ${name} is repeated. Send it once.` });
}

/** Headers that may carry a credential of the caller's own. */
const OWN_CREDENTIAL = /^(?:authorization|proxy-authorization|cookie|x-api-key|api-key|x-goog-api-key)$/i;
/** A shorter one is no secret, and would be found in any text. */
const SHORTEST_CREDENTIAL = 8;

/**
 * The credentials that a caller sends beside its gateway key, whole and without their scheme.
 *
 * @param raw flat raw headers of a request with `x-gateway-key`
 */
export function ownCredentials(raw: readonly string[]): string[] {
  const all: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const value = raw[i + 1]!;
    const token = value.slice(value.indexOf(' ') + 1).trim();
    const isList = raw[i]!.toLowerCase() === 'sec-websocket-protocol';
    if (!isList && !OWN_CREDENTIAL.test(raw[i]!)) continue;
    const texts = isList ? subprotocolKeys(value) : [value, token];
    all.push(...texts.filter((text) => text.length >= SHORTEST_CREDENTIAL));
  }
  return all;
}

/** Headers that may carry a key. */
const CREDENTIAL_HEADER = /^(?:authorization|x-api-key|api-key|x-goog-api-key|x-gateway-key)$/i;

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
