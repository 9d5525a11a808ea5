import { PROVIDER_KEY } from '../support/gateway.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

/** What a client sees of an answer with these header lines: the head's lines, less the request id's value. */
async function seen(lines: string[], method = 'POST', body = 'ok'): Promise<string[]> {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1'));
    if (!/\r\ncontent-length:/i.test(lines.join('\r\n'))) req.socket.end();
  };
  const reply = await wire.call(`${method} /v1/chat/completions`, [], method === 'POST' ? '{}' : '');
  expect(reply.body.toString()).toBe(body);
  await wire.expectSound(1);
  return reply.head.replace(/^(x-gateway-request-id: )[0-9a-f-]{36}/m, '$1ID').split('\r\n');
}

/** This hop's own lines: the request id, and how its connection goes on. */
const OWN = ['x-gateway-request-id: ID', 'Connection: keep-alive', 'Keep-Alive: timeout=75'];

it('carries every other header in its order, case and repetition, and adds nothing but its own', async () => {
  const kept = [
    'Content-Type: application/json',
    'date: Tue, 01 Jan 2030 00:00:00 GMT',
    'Server: provider',
    'WWW-Authenticate: Basic realm="a"',
    'www-authenticate: Bearer',
    'WWW-Authenticate: Digest x="y, z"',
    'Link: </a>; rel=next',
    'Link: </b>; rel=prev',
    'Vary: Origin',
    'Vary: Accept',
    'X-Twice: 1',
    'x-between: 2',
    'x-TWICE: 3',
    'X-Request-Id: req_1',
    'x-ratelimit-remaining-tokens: 149984',
    'openai-processing-ms: 12',
    'X-Powered-By: theirs',
    'ETag: "theirs"',
    'X-Latin: caf\xe9 \xff\x80',
    'X-Blanks: a  b\t c',
    '__proto__: a',
    'constructor: b',
    'Content-Encoding: gzip',
    'retry-after: 1',
    'x-should-retry: true',
    'Content-Length: 2',
  ];
  expect(await seen(['HTTP/1.1 200 OK', ...kept])).toEqual(['HTTP/1.1 200 OK', ...kept, ...OWN]);
});

it('makes up no Date, no ETag, no X-Powered-By and no Content-Type', async () => {
  expect(await seen(['HTTP/1.1 200 OK', 'Content-Length: 2'])).toEqual([
    'HTTP/1.1 200 OK',
    'Content-Length: 2',
    ...OWN,
  ]);
});

it('keeps an empty value', async () => {
  expect(await seen(['HTTP/1.1 200 OK', 'X-Empty:', 'Content-Length: 2'])).toContain('X-Empty: ');
});

it('drops what is between the provider and this hop, or would speak in our name', async () => {
  const dropped = [
    'Connection: keep-alive',
    'Keep-Alive: timeout=5',
    'Proxy-Authenticate: Basic',
    'Proxy-Connection: keep-alive',
    'TE: x',
    'Trailer: X-Sum',
    'Upgrade: h2c',
    'Set-Cookie: __cf_bm=x',
    'set-cookie: b=c',
    'Alt-Svc: h3=":443"',
    'X-Gateway-Request-Id: forged',
    'x-gateway-error: invalid_api_key',
    'Idempotent-Replayed: true',
    'idempotency-stored: false',
    `X-Echo: ${PROVIDER_KEY}`,
    `X-Echo: Bearer ${PROVIDER_KEY}, x`,
    `X-${PROVIDER_KEY}: x`,
  ];
  expect(await seen(['HTTP/1.1 200 OK', 'X-A: 1', ...dropped, 'X-B: 2', 'Content-Length: 2'])).toEqual([
    'HTTP/1.1 200 OK',
    'X-A: 1',
    'X-B: 2',
    'Content-Length: 2',
    ...OWN,
  ]);
});

it('frames an answer that ends with its connection in chunks of its own', async () => {
  const lines = await seen(['HTTP/1.1 200 OK', 'X-A: 1']);
  expect(lines).toEqual(['HTTP/1.1 200 OK', 'X-A: 1', ...OWN, 'Transfer-Encoding: chunked']);
});

it.each([
  ['HEAD', 'HTTP/1.1 200 OK', ['Content-Type: a/b', 'Content-Length: 1234', 'Content-Encoding: gzip']],
  ['HEAD', 'HTTP/1.1 404 Not Found', ['Content-Length: 9']],
  ['POST', 'HTTP/1.1 204 No Content', ['X-A: 1']],
  ['POST', 'HTTP/1.1 304 Not Modified', ['ETag: "x"', 'Content-Length: 1234']],
])('carries the headers of an answer without a body: %s %s', async (method, status, headers) => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(`${[status, ...headers].join('\r\n')}\r\n\r\n`);
  };
  const reply = await wire.call(`${method} /v1/chat/completions`);
  expect(reply.head.split('\r\n').slice(0, -3)).toEqual([status, ...headers]);
  expect(reply.header('transfer-encoding')).toBeUndefined();
  await wire.expectSound(1);
});
