import { PROVIDER_KEY } from '../support/gateway.js';
import { never } from '../support/never.js';
import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

/** Sends a head and gives what the provider saw: every line, in order. */
async function seen(line: string, headers: string[], body = ''): Promise<string[]> {
  const [reply] = await wire.send(request(line, headers, body));
  expect(reply!.status).toBe(200);
  await wire.expectSound(1);
  return wire.provider.requests.at(-2)!.head.split('\r\n');
}

/** What this hop writes itself, and all that it adds. */
const own = (line: string) => [
  `${line} HTTP/1.1`,
  `host: ${new URL(wire.provider.url).host}`,
  'connection: keep-alive',
];
const CREDENTIAL = `Authorization: Bearer ${PROVIDER_KEY}`;

const KEPT = [
  'User-Agent: OpenAI/Python 1.99.0',
  'accept: application/json',
  'Accept-Encoding: gzip, deflate, br, zstd',
  'X-Stainless-Lang: python',
  'x-stainless-retry-count: 0',
  'OpenAI-Organization: org-1',
  'anthropic-version: 2023-06-01',
  'anthropic-beta: a',
  'Anthropic-Beta: b',
  'Idempotency-Key: 9f1c',
  'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'X-Twice: 1',
  'X-Between: 2',
  'x-twice: 3',
  'X-Empty:',
  'X-Blanks: a  b\t c',
  'X-Latin: caf\xe9 \xff\x80',
  'X-Quotes: "a\\"b", c',
  "x-UPPER-lower_09!#$%&'*+.^`|~: token",
  '__proto__: a',
  'constructor: b',
  'toString: c',
  'hasOwnProperty: d',
  'X-HTTP-Method-Override: GET',
  'Content-Encoding: gzip',
  'Content-Language: de',
  'Range: bytes=0-1',
  'If-None-Match: "x"',
  'Origin: https://app.test',
  'Referer: https://app.test/',
  'Date: Tue, 01 Jan 2030 00:00:00 GMT',
  'Warning: 199 - "x"',
  'X-Request-Id: client-1',
  'X-Forwarded: not in the list',
  'Forwarded-For: not in the list',
];

never(
  'carries every other header in its order, case and repetition, and adds nothing but this hop of its own',
  async () => {
    const body = '{"a":1}';
    expect(
      await seen('POST /v1/chat/completions', [...KEPT, wire.auth, 'Content-Type: application/json'], body),
    ).toEqual([
      ...own('POST /v1/chat/completions'),
      ...KEPT.map((line) => line.replace('X-Empty:', 'X-Empty: ')),
      CREDENTIAL,
      'Content-Type: application/json',
      'content-length: 7',
    ]);
  },
);

it('adds nothing to a bare request', async () => {
  expect(await seen('GET /v1/models', [wire.auth])).toEqual([...own('GET /v1/models'), CREDENTIAL]);
});

never('drops what is between the client and this hop, or tells about our side', async () => {
  const dropped = [
    'Connection: keep-alive',
    'Keep-Alive: timeout=5',
    'Proxy-Connection: keep-alive',
    'Proxy-Authenticate: Basic',
    'TE: trailers',
    'Trailer: X-Sum',
    'Upgrade: h2c',
    'Cookie: a=b',
    'Forwarded: for=1.2.3.4',
    'X-Forwarded-For: 1.2.3.4',
    'X-Forwarded-Host: evil.test',
    'x-forwarded-proto: https',
    'X-FORWARDED-anything: x',
    'X-Real-IP: 1.2.3.4',
    'Via: 1.1 other',
    'Expect: 100-continue',
    'X-Gateway-Request-Id: forged',
    'x-gateway-anything: x',
    'x-api-key: other',
    'API-Key: other',
    'X-Goog-Api-Key: other',
    'Proxy-Authorization: Basic eDp5',
  ];
  const client = await wire.connect();
  client.send(request('POST /v1/chat/completions', ['X-First: 1', ...dropped, wire.auth, 'X-Last: 2'], '{}'));
  expect(await client.reader.head()).toBe('HTTP/1.1 100 Continue');
  expect((await client.answer()).status).toBe(200);
  client.destroy();
  const { head } = wire.provider.requests.at(-1)!;
  await wire.expectSound(1);
  expect(head.split('\r\n')).toEqual([
    ...own('POST /v1/chat/completions'),
    'X-First: 1',
    CREDENTIAL,
    'X-Last: 2',
    'content-length: 2',
  ]);
});

never('keeps the length of a body a length, and chunks chunks', async () => {
  const chunked = await seen('POST /v1/x', [wire.auth, 'Transfer-Encoding: chunked'], '2\r\n{}\r\n0\r\n\r\n');
  expect(chunked).toEqual([...own('POST /v1/x'), CREDENTIAL, 'transfer-encoding: chunked']);
  const empty = await seen('POST /v1/x', [wire.auth, 'Transfer-Encoding: chunked'], '0\r\n\r\n');
  expect(empty).toEqual([...own('POST /v1/x'), CREDENTIAL, 'content-length: 0']);
  const sized = await seen('POST /v1/x', [wire.auth, 'Content-Length: 0']);
  expect(sized).toEqual([...own('POST /v1/x'), CREDENTIAL, 'content-length: 0']);
});

// As the documentation says (docs/reference/headers-and-bodies.md, "Bodies").
it.each([
  ['POST', true],
  ['PUT', true],
  ['PATCH', true],
  ['GET', false],
  ['DELETE', false],
  ['OPTIONS', false],
])('announces an empty body of a %s: %s', async (method, announced) => {
  const length = announced ? ['content-length: 0'] : [];
  for (const framing of ['Content-Length: 0', 'Transfer-Encoding: chunked']) {
    const body = framing.startsWith('T') ? '0\r\n\r\n' : '';
    expect(await seen(`${method} /v1/x`, [wire.auth, framing], body)).toEqual([
      ...own(`${method} /v1/x`),
      CREDENTIAL,
      ...length,
    ]);
  }
});
