import { containsKeyFormat, API_KEY_LENGTH } from '../platform/api-key.js';
import { firstHeader } from '../platform/raw-headers.js';
import type { Provider } from '../providers/provider.js';

/**
 * Which headers are forwarded: all, in their order, case and repetition, except those listed here. The functions take and
 * return flat raw arrays [name, value, name, value, …] as Node and undici use them, so nothing is merged, sorted or
 * lower-cased.
 */

/** Hop-by-hop fields (RFC 9110 7.6.1), and older ones that intermediaries must not forward. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** Headers in which clients send a key. */
const CREDENTIALS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'];

/** Fields about the client's side, or for this hop only: `content-length` is its framing. */
const REQUEST_DROPPED = new Set([
  ...HOP_BY_HOP,
  'proxy-authorization',
  'host',
  'content-length',
  'cookie',
  'forwarded',
  'x-real-ip',
  'via',
  'expect',
]);

/**
 * Fields with which a response acts for the whole origin that a browser has it from, which is the gateway's, or navigates
 * its page. What concerns a single response, such as Content-Security-Policy, is forwarded.
 */
const OF_ORIGIN = [
  'set-cookie',
  'set-cookie2',
  'clear-site-data',
  'set-login',
  'sec-session-registration',
  'sec-session-challenge',
  'secure-session-registration',
  'secure-session-challenge',
  'alt-svc',
  'strict-transport-security',
  'expect-ct',
  'public-key-pins',
  'public-key-pins-report-only',
  'nel',
  'report-to',
  'reporting-endpoints',
  'accept-ch',
  'accept-ch-lifetime',
  'critical-ch',
  'origin-agent-cluster',
  'service-worker-allowed',
  'use-as-dictionary',
  'refresh',
];

/** Fields for this hop, for the gateway's origin, and the gateway's own. */
const RESPONSE_DROPPED = new Set([...HOP_BY_HOP, ...OF_ORIGIN, 'idempotent-replayed', 'idempotency-stored']);

/** Fields that are forwarded even if `Connection` lists them: without them the message would be broken. */
const NEVER_CONNECTION_OPTIONS = new Set([
  'content-length',
  'content-type',
  'content-encoding',
  'host',
  'idempotency-key',
  'proxy-authorization',
  ...CREDENTIALS,
]);

const NO_OPTIONS: ReadonlySet<string> = new Set();

/** Nearly all names: a test takes a fifth of the time of two replacements that replace nothing. */
const IS_PLAIN = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

type Action = 'forward' | 'drop' | 'replace';

function requestAction(name: string): Action {
  if (CREDENTIALS.includes(name)) return 'replace';
  // CGI-like servers read `_`, and some any other character, as `-`: `X_Forwarded_For` and `Transfer-Encoding!` are dropped too.
  const plain = IS_PLAIN.test(name) ? name : name.replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
  const isReserved = plain.startsWith('x-forwarded-') || plain.startsWith('x-gateway-');
  return isReserved || REQUEST_DROPPED.has(plain) || CREDENTIALS.includes(plain) ? 'drop' : 'forward';
}

function isResponseHeader(name: string): boolean {
  return !RESPONSE_DROPPED.has(name) && !name.startsWith('x-gateway-');
}

/** The header with the provider's secret. */
export interface Credential {
  name: string;
  value: string;
}

/**
 * Returns the headers for the provider. Its credential takes the place of the client's first one. A header that contains a
 * gateway key, the caller's or another, is dropped.
 *
 * @param raw flat raw headers as received
 * @param forwardsCredentials the client's own credentials are forwarded as they are; `credential` is null then
 */
export function requestHeaders(
  raw: readonly string[],
  credential: Credential | null,
  forwardsCredentials = false,
): string[] {
  const options = connectionOptions(raw);
  const out: string[] = [];
  let placed = credential === null;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!;
    const value = raw[i + 1]!;
    const action = requestAction(name.toLowerCase());
    if (action === 'replace' && !placed) {
      out.push(credential!.name, credential!.value);
      placed = true;
    }
    if ((action !== 'forward' && !(forwardsCredentials && action === 'replace')) || isListed(options, name))
      continue;
    if (containsKey(value) || containsKey(name)) continue;
    out.push(name, value);
  }
  if (!placed) out.push(credential!.name, credential!.value);
  return out;
}

/** What Anthropic's SDKs add for a token that they have exchanged (`OAUTH_API_BETA_HEADER` of @anthropic-ai/sdk). */
const TOKEN_BETA = 'oauth-2025-04-20';

/**
 * Returns the headers of a call with an issued token without what says of the caller's credential that it is a token. The
 * provider's own credential takes its place, and providers reject the mark beside an API key: Vertex with 400.
 *
 * @param raw flat raw headers as received
 */
export function withoutTokenMarks(raw: readonly string[]): string[] {
  const out: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const [name, value] = [raw[i]!, raw[i + 1]!];
    if (name.toLowerCase() !== 'anthropic-beta' || !value.includes(TOKEN_BETA)) {
      out.push(name, value);
      continue;
    }
    const left = value.split(',').filter((beta) => beta.trim() !== TOKEN_BETA);
    if (left.length > 0) out.push(name, left.join(',').trim());
  }
  return out;
}

/**
 * Returns the headers for the provider with what it checks: its credential, or the signature of the request.
 *
 * @param path with the query, as it is sent
 * @param raw flat raw headers as received
 */
export function providerHeaders(
  provider: Provider,
  method: string,
  path: string,
  raw: readonly string[],
  body: Buffer | null,
): string[] {
  const headers = requestHeaders(raw, provider.credential, provider.forwardsCredentials);
  if (provider.beta !== null) addBeta(headers, provider.beta);
  return provider.signer === null ? headers : provider.signer.sign(method, path, headers, body);
}

/** Adds a value to the list of `anthropic-beta`, unless it is there. */
function addBeta(headers: string[], beta: string): void {
  let last = -1;
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.toLowerCase() !== 'anthropic-beta') continue;
    if (headers[i + 1]!.split(',').some((value) => value.trim() === beta)) return;
    last = i;
  }
  if (last === -1) headers.push('anthropic-beta', beta);
  else headers[last + 1] = headers[last + 1]!.trim() === '' ? beta : `${headers[last + 1]!},${beta}`;
}

/**
 * Returns the headers for the client, with `x-gateway-request-id` at the end.
 *
 * @param raw flat raw headers as undici read them; bytes outside ASCII are kept as latin-1
 * @param secret the provider's secret: any header that contains it is dropped
 */
export function responseHeaders(raw: readonly Buffer[], secret: string | null, requestId: string): string[] {
  const headers: string[] = [];
  for (const part of raw) headers.push(part.toString('latin1'));
  const options = connectionOptions(headers);
  const out: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    const value = headers[i + 1]!;
    if (!isResponseHeader(name.toLowerCase()) || isListed(options, name)) continue;
    if (secret !== null && (value.includes(secret) || name.includes(secret))) continue;
    out.push(name, value);
  }
  out.push('x-gateway-request-id', requestId);
  return out;
}

/** Checks the length first: most names and values are shorter than a key. */
function containsKey(text: string): boolean {
  return text.length >= API_KEY_LENGTH && containsKeyFormat(text);
}

/** Bytes of a response's body by its head (RFC 9112 6.3); null if the head does not say. */
export function bodyLength(method: string, status: number, headers: readonly string[]): number | null {
  if (method === 'HEAD' || status === 204 || status === 304) return 0;
  const length = firstHeader(headers, 'content-length');
  return length === undefined ? null : Number(length);
}

/** Lower-case names listed by `Connection` (RFC 9110 7.6.1), without those that are forwarded all the same. */
function connectionOptions(raw: readonly string[]): ReadonlySet<string> {
  let options: Set<string> | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i]!.length !== 10 || raw[i]!.toLowerCase() !== 'connection') continue;
    if (raw[i + 1] === 'keep-alive') continue;
    for (const part of raw[i + 1]!.split(',')) {
      const option = part.trim().toLowerCase();
      if (option === '' || option === 'keep-alive' || option === 'close') continue;
      if (!NEVER_CONNECTION_OPTIONS.has(option)) (options ??= new Set()).add(option);
    }
  }
  return options ?? NO_OPTIONS;
}

function isListed(options: ReadonlySet<string>, name: string): boolean {
  return options !== NO_OPTIONS && options.has(name.toLowerCase());
}

/**
 * Returns true for any transfer coding other than a single `chunked`. With the header dropped the client could not decode the
 * body, and a repeated line can be read in two ways.
 */
export function hasForeignCoding(raw: readonly Buffer[]): boolean {
  let codings = 0;
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i]!.length !== 17 || raw[i]!.toString('latin1').toLowerCase() !== 'transfer-encoding') continue;
    if (++codings > 1 || raw[i + 1]!.toString('latin1').trim().toLowerCase() !== 'chunked') return true;
  }
  return false;
}
