import fc from 'fast-check';
import { requestHeaders, responseHeaders } from '../../src/proxy/headers.js';
import { check } from '../support/property.js';

/** The contract's lists, written down a second time. */
const HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
const CREDENTIALS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key', 'proxy-authorization'];
const FROM_CLIENT = [
  ...HOP,
  ...CREDENTIALS,
  'host',
  'content-length',
  'cookie',
  'forwarded',
  'x-real-ip',
  'via',
  'expect',
];
const FROM_PROVIDER = [
  ...HOP,
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
  'idempotent-replayed',
  'idempotency-stored',
];
const UNTOUCHABLE = [
  ...CREDENTIALS,
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'idempotency-key',
];
const KEY = `ptn_${'k'.repeat(38)}`;
const OTHER_KEY = `ptn_${'0'.repeat(38)}`;
const SECRET = 'sk-secret';
const CREDENTIAL = { name: 'Authorization', value: `Bearer ${SECRET}` };

const TOKEN = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const VALUE = Array.from({ length: 256 }, (_, i) => String.fromCharCode(i)).filter((c) =>
  /[\t\x20-\x7e\x80-\xff]/.test(c),
);
const randomCase = (name: string) =>
  fc
    .array(fc.boolean(), { minLength: name.length, maxLength: name.length })
    .map((upper) => [...name].map((letter, i) => (upper[i] ? letter.toUpperCase() : letter)).join(''));
const name = fc.oneof(
  fc.constantFrom(...new Set([...FROM_CLIENT, ...FROM_PROVIDER, ...UNTOUCHABLE])).chain(randomCase),
  fc.constantFrom(
    'X-Forwarded-For',
    'x-gateway-error',
    'X_Forwarded_For',
    'X_Api_Key',
    'Content_Length',
    'Transfer_Encoding',
    'Transfer-Encoding!',
    'x-gateway_key',
    '_Host_',
    'X_Foo',
    'X-Foo',
    'x-foo',
    '__proto__',
    'constructor',
    'Via2',
    KEY,
    `x-${SECRET}`,
  ),
  fc.string({ unit: fc.constantFrom(...TOKEN), minLength: 1, maxLength: 20 }),
);
const value = fc.oneof(
  fc.string({ unit: fc.constantFrom(...VALUE), maxLength: 30 }),
  fc.constantFrom(
    'x-foo, content-type',
    'close, __proto__',
    KEY,
    `a${KEY}b`,
    `Bearer ${OTHER_KEY}`,
    SECRET,
    `Bearer ${SECRET}x`,
    '',
  ),
);
const headers = fc.array(fc.tuple(name, value), { maxLength: 30 });

type Pair = [string, string];
const flat = (pairs: Pair[]) => pairs.flat();
function pairs(raw: readonly string[]): Pair[] {
  return Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i]!, raw[2 * i + 1]!]);
}

/** A name as a CGI-like server may read it. */
const fold = (lower: string) =>
  lower
    .split(/[^a-z0-9]/)
    .filter((word) => word !== '')
    .join('-');

/** Which of these lines must cross, by the contract's words and no others. */
function expected(
  lines: Pair[],
  dropped: string[],
  prefixes: string[],
  secrets: string[],
  read = (lower: string) => lower,
): Pair[] {
  const listed = lines
    .filter(([key]) => key.toLowerCase() === 'connection')
    .flatMap(([, text]) => text.split(',').map((option) => option.trim().toLowerCase()))
    .filter((option) => !UNTOUCHABLE.includes(option) && option !== 'close');
  return lines.filter(([key, text]) => {
    const lower = key.toLowerCase();
    const plain = read(lower);
    if (dropped.includes(plain) || prefixes.some((prefix) => plain.startsWith(prefix))) return false;
    return (
      !listed.includes(lower) && !secrets.some((secret) => key.includes(secret) || text.includes(secret))
    );
  });
}

const expectedFromClient = (lines: Pair[]) =>
  expected(lines, FROM_CLIENT, ['x-forwarded-', 'x-gateway-'], [KEY, OTHER_KEY], fold);

it('carries to the provider what the contract lets through, in order, case and repetition, and one credential', () => {
  check(
    fc.property(headers, (lines) => {
      const out = pairs(requestHeaders(flat(lines), CREDENTIAL));
      const kept = expectedFromClient(lines);
      const at = out.findIndex(([key, text]) => key === CREDENTIAL.name && text === CREDENTIAL.value);
      expect(at).not.toBe(-1);
      expect(out.filter((_, i) => i !== at)).toEqual(kept);
    }),
    { numRuns: 3_000 },
  );
});

it('sends no credential at all to a provider that takes none', () => {
  check(
    fc.property(headers, (lines) => {
      const out = pairs(requestHeaders(flat(lines), null));
      expect(out).toEqual(expectedFromClient(lines));
    }),
  );
});

it('carries to the client what the contract lets through, byte for byte, and the request id', () => {
  check(
    fc.property(headers, (lines) => {
      const raw = flat(lines).map((part) => Buffer.from(part, 'latin1'));
      const out = pairs(responseHeaders(raw, SECRET, 'id'));
      expect(out.pop()).toEqual(['x-gateway-request-id', 'id']);
      expect(out).toEqual(expected(lines, FROM_PROVIDER, ['x-gateway-'], [SECRET]));
    }),
    { numRuns: 3_000 },
  );
});
