import { createHmac, hash } from 'node:crypto';

/**
 * AWS Signature Version 4 (AWS IAM User Guide, "Create a signed AWS API request"). Written here because the request must be
 * signed as it is sent: `@smithy/signature-v4`, with which the tests compare it, takes a decoded query and merged headers.
 */

const ALGORITHM = 'AWS4-HMAC-SHA256';

/** What is signed. */
export interface SignedRequest {
  readonly method: string;
  /** Raw path with its query, as it is sent. */
  readonly target: string;
  /** Lower-case names and values in turn; each is signed. Must include `host` and `x-amz-date`. */
  readonly headers: readonly string[];
  /** SHA-256 of the body in hex. */
  readonly payloadHash: string;
}

/** For which service and day a signature is valid. */
export interface SigningScope {
  /** YYYYMMDD. */
  readonly day: string;
  readonly region: string;
  readonly service: string;
}

/** The time in the form of `X-Amz-Date`: YYYYMMDDTHHMMSSZ. */
export function amzDate(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`;
}

/** Valid for one scope, so it can be kept for a day. */
export function signingKey(secretAccessKey: string, { day, region, service }: SigningScope): Buffer {
  let key: Buffer | string = `AWS4${secretAccessKey}`;
  for (const part of [day, region, service, 'aws4_request']) key = hmac(key, part);
  return key as Buffer;
}

/** The value of `Authorization`. @param date in the form of `X-Amz-Date` */
export function authorizationOf(
  request: SignedRequest,
  accessKeyId: string,
  key: Buffer,
  scope: SigningScope,
  date: string,
): string {
  const { canonical, signedHeaders } = canonicalRequest(request, scope.service);
  const credentialScope = `${scope.day}/${scope.region}/${scope.service}/aws4_request`;
  // Header values are sent as latin-1; everything else is ASCII.
  const digest = hash('sha256', Buffer.from(canonical, 'latin1'), 'hex');
  const signature = hmac(key, `${ALGORITHM}\n${date}\n${credentialScope}\n${digest}`).toString('hex');
  return `${ALGORITHM} Credential=${accessKeyId}/${credentialScope}, SignedHeaders=${signedHeaders}, Signature=${signature}`;
}

/** @param service S3 signs the path as it is sent; every other service signs it normalized and encoded once more */
function canonicalRequest(
  { method, target, headers, payloadHash }: SignedRequest,
  service: string,
): { canonical: string; signedHeaders: string } {
  const queryAt = target.indexOf('?');
  const path = queryAt === -1 ? target : target.slice(0, queryAt);
  const query = queryAt === -1 ? '' : target.slice(queryAt + 1);
  const values = new Map<string, string>();
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    const value = headers[i + 1]!.trim().replace(/[ \t]+/g, ' ');
    const earlier = values.get(name);
    values.set(name, earlier === undefined ? value : `${earlier},${value}`);
  }
  const names = [...values.keys()].sort();
  const signedHeaders = names.join(';');
  const canonical = [
    method,
    service === 's3' ? path : canonicalPath(path),
    canonicalQuery(query),
    ...names.map((name) => `${name}:${values.get(name)!}`),
    '',
    signedHeaders,
    payloadHash,
  ].join('\n');
  return { canonical, signedHeaders };
}

/** Without empty and dot segments (RFC 3986 5.2.4); what is already encoded is encoded again. */
function canonicalPath(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '' || segment === '.') continue;
    if (segment === '..') segments.pop();
    else segments.push(encode(segment));
  }
  const end = segments.length > 0 && path.endsWith('/') ? '/' : '';
  return `/${segments.join('/')}${end}`;
}

/** Each parameter encoded in the one canonical form, sorted by name and then by value. */
function canonicalQuery(query: string): string {
  if (query === '') return '';
  const parameters = query.split('&').filter((parameter) => parameter !== '');
  const pairs = parameters.map((parameter): [string, string] => {
    const at = parameter.indexOf('=');
    if (at === -1) return [reencode(parameter), ''];
    return [reencode(parameter.slice(0, at)), reencode(parameter.slice(at + 1))];
  });
  pairs.sort(([a, x], [b, y]) => compare(a, b) || compare(x, y));
  return pairs.map(([name, value]) => `${name}=${value}`).join('&');
}

/** By code unit, as the specification says; not by locale. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Encodes every character but the unreserved ones (RFC 3986 2.3). */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, percent);
}

/** Brings text that may contain escapes into the form that `encode` makes of the decoded text. */
function reencode(text: string): string {
  return text.replace(/%[0-9A-Fa-f]{2}|[^A-Za-z0-9_.~-]/gu, (part) => {
    if (part.length !== 3) return encode(part);
    const char = String.fromCharCode(parseInt(part.slice(1), 16));
    return /[A-Za-z0-9_.~-]/.test(char) ? char : part.toUpperCase();
  });
}

function percent(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
}

function hmac(key: Buffer | string, data: string): Buffer {
  return createHmac('sha256', key).update(data).digest();
}
