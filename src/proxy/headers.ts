import { containsKeyFormat, API_KEY_LENGTH } from '../platform/api-key.js';
import { firstHeader } from '../platform/raw-headers.js';

/**
 * Which headers cross the gateway (contract: everything in its order, case and repetition, less what is listed here).
 * All functions take and give flat raw arrays [name, value, name, value, …] as Node and undici carry them: no map,
 * so nothing is merged, sorted or lower-cased.
 */

/** Hop-by-hop fields, RFC 9110 7.6.1, and the older ones intermediaries must not pass on. */
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

/** The four ways clients send a key. */
const CREDENTIALS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'];

/** What tells the provider about our side, or belongs to us alone. `content-length` is this hop's framing. */
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

/** What the provider says to this hop, or would let it act in the gateway's name towards the browser. */
const RESPONSE_DROPPED = new Set([
  ...HOP_BY_HOP,
  'set-cookie',
  'set-cookie2',
  'alt-svc',
  'idempotent-replayed',
  'idempotency-stored',
]);

/** Fields `Connection` may list without effect: dropping them would cripple this hop or the end-to-end meaning. */
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

type Fate = 'passed' | 'dropped' | 'replaced';

const MOST_NAMES = 1_000;
/** Shorter than a gateway key: a name that holds one is not kept. */
const LONGEST_NAME = 40;

/** What becomes of headers by name, kept by the name as it came: to fold its case each time costs some 3 % of a call. */
class Fates {
  private readonly known = new Map<string, Fate>();

  constructor(private readonly decide: (lowerName: string) => Fate) {}

  of(name: string): Fate {
    const known = this.known.get(name);
    if (known !== undefined) return known;
    const fate = this.decide(name.toLowerCase());
    if (this.known.size === MOST_NAMES) this.known.clear();
    if (name.length <= LONGEST_NAME) this.known.set(name, fate);
    return fate;
  }
}

const requestFates = new Fates((name) => {
  if (CREDENTIALS.includes(name)) return 'replaced';
  // CGI-like servers read `_`, and some any other sign, as `-`: `X_Forwarded_For` and `Transfer-Encoding!` are dropped too.
  const plain = name.replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
  const tellsOfUs = plain.startsWith('x-forwarded-') || plain.startsWith('x-gateway-');
  return tellsOfUs || REQUEST_DROPPED.has(plain) || CREDENTIALS.includes(plain) ? 'dropped' : 'passed';
});

const responseFates = new Fates((name) =>
  RESPONSE_DROPPED.has(name) || name.startsWith('x-gateway-') ? 'dropped' : 'passed',
);

/** The provider's own credential: header name and value, or null when it takes none. */
export interface Credential {
  name: string;
  value: string;
}

/**
 * Headers for the provider. Its credential stands where the client's first one stood. A header that contains a gateway
 * key, the caller's or anybody's, is dropped.
 *
 * @param raw flat raw headers as received
 */
export function requestHeaders(raw: readonly string[], credential: Credential | null): string[] {
  const options = connectionOptions(raw);
  const out: string[] = [];
  let placed = credential === null;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!;
    const value = raw[i + 1]!;
    const fate = requestFates.of(name);
    if (fate === 'replaced' && !placed) {
      out.push(credential!.name, credential!.value);
      placed = true;
    }
    if (fate !== 'passed' || isListed(options, name)) continue;
    if (holdsKey(value) || holdsKey(name)) continue;
    out.push(name, value);
  }
  if (!placed) out.push(credential!.name, credential!.value);
  return out;
}

/**
 * Headers for the client, ended by `x-gateway-request-id`.
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
    if (responseFates.of(name) !== 'passed' || isListed(options, name)) continue;
    if (secret !== null && (value.includes(secret) || name.includes(secret))) continue;
    out.push(name, value);
  }
  out.push('x-gateway-request-id', requestId);
  return out;
}

/** Most names and values are shorter than a key. */
function holdsKey(text: string): boolean {
  return text.length >= API_KEY_LENGTH && containsKeyFormat(text);
}

/** Bytes of a response's body by its head (RFC 9112 6.3); null if the head does not say. */
export function bodyLength(method: string, status: number, headers: readonly string[]): number | null {
  if (method === 'HEAD' || status === 204 || status === 304) return 0;
  const length = firstHeader(headers, 'content-length');
  return length === undefined ? null : Number(length);
}

/** Lower-case names listed by `Connection` (RFC 9110 7.6.1), without those that must not be dropped at its word. */
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
 * True for a transfer coding other than one `chunked`: taken off unread it would leave the client with a body nobody can
 * decode, and a repeated line can be read in two ways.
 */
export function hasForeignCoding(raw: readonly Buffer[]): boolean {
  let codings = 0;
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i]!.length !== 17 || raw[i]!.toString('latin1').toLowerCase() !== 'transfer-encoding') continue;
    if (++codings > 1 || raw[i + 1]!.toString('latin1').trim().toLowerCase() !== 'chunked') return true;
  }
  return false;
}
