import { containsKeyFormat } from '../../platform/api-key.js';
import { hasParameter, percentDecode } from '../../platform/query-parameter.js';
import { PROVIDER_NAME } from '../../providers/provider-name.js';
import { GatewayError } from '../../errors/gateway-error.js';

/**
 * The destination of an API call, read from the raw request target without decoding or normalising it
 * (RFC 9112 3.2: only origin-form is served; RFC 3986 6.2.2 normalisation is what lets a `..` slip past a check).
 */
export interface RequestTarget {
  /** Provider named by `/p/<provider>/…`, or null on `/v1/…`. */
  provider: string | null;
  /** Path as sent, without the query, as in the request log. */
  path: string;
  /** Path after `/p/<provider>`, without the query. The endpoint rule checks it. */
  endpoint: string;
  /** Path and query that are appended to the provider's URL, byte for byte. */
  upstreamPath: string;
}

/** Visible ASCII but `#` and `\`: RFC 3986 allows no other byte in a path or query, and parsers disagree on these two. */
const SAFE_BYTES = /^[\x21\x22\x24-\x5b\x5d-\x7e]*$/;
const MALFORMED_ESCAPE = /%(?![0-9A-Fa-f]{2})/;
/** Servers cut a path at NUL, and URL parsers drop tabs and line breaks (WHATWG URL 4.4): `.%09.` becomes `..`. */
const CONTROL_BYTE = /[\x00-\x1f\x7f]/;
const TOKEN_PARAMETER = 'access_token';

/**
 * Parses and validates a raw request target.
 *
 * @returns null if it is no API call (admin, health, unknown)
 * @throws GatewayError invalid_path, credential_in_query, not_found, provider_not_found
 */
export function readRequestTarget(raw: string): RequestTarget | null {
  if (!raw.startsWith('/') || raw.startsWith('//') || !SAFE_BYTES.test(raw))
    throw new GatewayError('invalid_path');
  const queryAt = raw.indexOf('?');
  // A copy: a slice would keep a query of 64 KB alive for as long as the call's row waits for Postgres.
  const path = queryAt === -1 ? raw : Buffer.from(raw.slice(0, queryAt), 'latin1').toString('latin1');
  if (isUnsafe(path)) throw new GatewayError('invalid_path');
  if (carriesCredential(raw, queryAt)) throw new GatewayError('credential_in_query');
  if (raw.startsWith('/v1/')) return { provider: null, path, endpoint: path, upstreamPath: raw };
  if (!raw.startsWith('/p/')) return null;
  const slash = path.indexOf('/', 3);
  if (slash === -1) throw new GatewayError('not_found');
  const provider = path.slice(3, slash);
  if (!PROVIDER_NAME.test(provider)) throw new GatewayError('provider_not_found');
  // A hop that resolves `//host/…` would read it as another host (RFC 3986 4.2).
  if (raw.startsWith('//', slash)) throw new GatewayError('invalid_path');
  return { provider, path, endpoint: path.slice(slash), upstreamPath: raw.slice(slash) };
}

/**
 * True if the provider, or a hop before it, could read another path from this one: a malformed escape, a control
 * byte, or a segment that is `.` or `..` when cut at `;`, as sent or after one or two rounds of percent-decoding.
 */
function isUnsafe(path: string): boolean {
  // Most paths have no escape; then only `/.` can start a dot segment.
  if (!path.includes('%')) return path.includes('/.') && hasDotSegment(path);
  if (MALFORMED_ESCAPE.test(path) || hasDotSegment(path)) return true;
  let decoded = path;
  for (let round = 0; round < 2 && decoded.includes('%'); round++) {
    decoded = percentDecode(decoded);
    if (CONTROL_BYTE.test(decoded) || hasDotSegment(decoded)) return true;
  }
  return false;
}

function hasDotSegment(path: string): boolean {
  for (const segment of path.split(/[/\\]/)) {
    const semicolon = segment.indexOf(';');
    const name = semicolon === -1 ? segment : segment.slice(0, semicolon);
    if (name === '.' || name === '..') return true;
  }
  return false;
}

/** A key anywhere in the target, or an `access_token` parameter (RFC 6750 2.3, which this gateway never honours). */
function carriesCredential(raw: string, queryAt: number): boolean {
  const decoded = raw.includes('%') ? percentDecode(raw) : raw;
  if (containsKeyFormat(raw) || (decoded !== raw && containsKeyFormat(decoded))) return true;
  return queryAt !== -1 && hasParameter(raw.slice(queryAt + 1), TOKEN_PARAMETER);
}
