import { containsKeyFormat } from '../keys/key-secret.js';
import { PROVIDER_NAME } from '../providers/provider-name.js';
import { Refusal } from '../refusal.js';

/**
 * Where a request on the road goes, read from the raw request target without decoding or normalising it
 * (RFC 9112 3.2: only origin-form is served; RFC 3986 6.2.2 normalisation is what lets a `..` slip past a check).
 */
export interface RequestTarget {
  /** Provider named by `/p/<provider>/…`, or null on `/v1/…`. */
  provider: string | null;
  /** Path as sent, without the query: what the request log keeps. */
  path: string;
  /** Path after `/p/<provider>`, without the query: what the endpoint rule is compared with. */
  endpoint: string;
  /** What follows the provider's URL on the wire: path and query, byte for byte. */
  upstreamPath: string;
}

const PROVIDER_ROAD = /^\/p\/([^/?]*)(\/[^]*)$/;

/** Visible ASCII but `#` and `\`: RFC 3986 has no other byte in a path or query, and both lead parsers astray. */
const SAFE_BYTES = /^[\x21\x22\x24-\x5b\x5d-\x7e]*$/;
const MALFORMED_ESCAPE = /%(?![0-9A-Fa-f]{2})/;

/**
 * Reads and judges a raw request target.
 *
 * @returns null when it is not on the road at all (admin, health, unknown)
 * @throws Refusal invalid_path, credential_in_query, not_found, provider_not_found
 */
export function readRequestTarget(raw: string): RequestTarget | null {
  if (!raw.startsWith('/') || raw.startsWith('//') || raw.startsWith('/\\'))
    throw new Refusal('invalid_path');
  const named = raw.startsWith('/p/');
  if (!named && !raw.startsWith('/v1/')) return null;
  const queryAt = raw.indexOf('?');
  const path = queryAt === -1 ? raw : raw.slice(0, queryAt);
  if (!SAFE_BYTES.test(raw)) throw new Refusal('invalid_path');
  if (MALFORMED_ESCAPE.test(path) || hasDotSegment(path)) throw new Refusal('invalid_path');
  if (carriesCredential(raw, queryAt)) throw new Refusal('credential_in_query');
  if (!named) return { provider: null, path, endpoint: path, upstreamPath: raw };
  const match = PROVIDER_ROAD.exec(raw);
  if (!match) throw new Refusal('not_found');
  const provider = match[1]!;
  if (!PROVIDER_NAME.test(provider)) throw new Refusal('provider_not_found');
  return { provider, path, endpoint: path.slice(3 + provider.length), upstreamPath: match[2]! };
}

/** True when any segment, cut at `;`, is `.` or `..`, as sent or after one or two rounds of percent-decoding. */
function hasDotSegment(path: string): boolean {
  let decoded = path;
  for (let round = 0; ; round++) {
    for (const segment of decoded.split(/[/\\]/)) {
      const semicolon = segment.indexOf(';');
      const name = semicolon === -1 ? segment : segment.slice(0, semicolon);
      if (name === '.' || name === '..') return true;
    }
    if (round === 2 || !decoded.includes('%')) return false;
    decoded = percentDecode(decoded);
  }
}

/** One round of percent-decoding byte by byte (latin-1): unlike decodeURIComponent it never throws. */
function percentDecode(text: string): string {
  return text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
}

/** A key anywhere in the target, or an `access_token` parameter (RFC 6750 2.3, which this gateway never honours). */
function carriesCredential(raw: string, queryAt: number): boolean {
  if (containsKeyFormat(raw)) return true;
  const escaped = raw.includes('%');
  if (escaped && containsKeyFormat(percentDecode(raw))) return true;
  if (queryAt === -1) return false;
  for (const pair of raw.slice(queryAt + 1).split(/[&;]/)) {
    const name = pair.split('=', 1)[0]!.replaceAll('+', ' ');
    if ((escaped ? percentDecode(name) : name).trim().toLowerCase() === 'access_token') return true;
  }
  return false;
}
