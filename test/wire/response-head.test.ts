import { PROVIDER_KEY } from '../support/gateway.js';
import { never } from '../support/never.js';
import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

describe('carried', () => {
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

  it('carries the bytes of a head with Expect, which Node writes at once', async () => {
    const kept = ['Expect: x', 'X-Latin: caf\xe9 \xff\x80', 'Content-Length: 2'];
    expect(await seen(['HTTP/1.1 500 Oops', ...kept])).toEqual(['HTTP/1.1 500 Oops', ...kept, ...OWN]);
  });

  never(
    'carries every other header in its order, case and repetition, and adds nothing but its own',
    async () => {
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
    },
  );

  // Node itself would change these bytes, or throw, in a Content-Disposition that follows a Content-Length.
  never.each([
    ['UTF-8, two bytes', '\xc3\xa9'],
    ['UTF-8, three bytes', '\xe6\x96\x87'],
    ['UTF-8, four bytes', '\xf0\x9f\x98\x80'],
    ['latin-1', '\xe9'],
    ['0xff', '\xff'],
    ['0xa0', '\xa0'],
    ['bytes that look as if they were encoded twice', '\xc3\x83\xc2\xa9'],
  ])('keeps a Content-Disposition byte for byte, and its place: %s', async (_, name) => {
    const lines = [
      `Content-Disposition: attachment; filename="${name}.csv"`,
      'Content-Length: 2',
      'X-Between: 1',
      `content-disposition: inline; filename="${name}"`,
      'Content-Disposition: attachment; filename="plain.csv"',
    ];
    expect(await seen(['HTTP/1.1 200 OK', ...lines])).toEqual(['HTTP/1.1 200 OK', ...lines, ...OWN]);
    const chunked = lines.filter((line) => !line.startsWith('Content-Length'));
    const unframed = ['HTTP/1.1 200 OK', ...chunked];
    expect((await seen(unframed)).slice(0, chunked.length + 1)).toEqual(unframed);
    const empty = ['HTTP/1.1 200 OK', 'Content-Length: 0', ...chunked];
    expect(await seen(empty, 'POST', '')).toEqual([...empty, ...OWN]);
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

  never('drops what is between the provider and this hop, or would speak in our name', async () => {
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
      'Strict-Transport-Security: max-age=31536000; includeSubDomains',
      'clear-site-data: "*"',
      'Refresh: 0; url=https://provider.example',
      'Service-Worker-Allowed: /',
      'NEL: {"report_to":"p","max_age":86400}',
      'Report-To: {"group":"p","max_age":86400,"endpoints":[{"url":"https://provider.example"}]}',
      'REPORTING-ENDPOINTS: p="https://provider.example"',
      'Accept-CH: Sec-CH-UA-Model',
      'Critical-CH: Sec-CH-UA-Model',
      'Accept-CH-Lifetime: 86400',
      'Origin-Agent-Cluster: ?1',
      'Use-As-Dictionary: match="/*"',
      'Expect-CT: max-age=86400',
      'Public-Key-Pins: max-age=1',
      'Public-Key-Pins-Report-Only: max-age=1',
      'Set-Login: logged-out',
      'Set-Cookie2: a=b',
      'Sec-Session-Registration: (ES256);path="r"',
      'Sec-Session-Challenge: "c"',
      'Secure-Session-Registration: (ES256);path="r"',
      'Secure-Session-Challenge: "c"',
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

  it('keeps what concerns one response only, or what clients need', async () => {
    const kept = [
      'Content-Security-Policy: sandbox',
      'WWW-Authenticate: Bearer',
      'Access-Control-Allow-Origin: *',
      'X-Content-Type-Options: nosniff',
      'Retry-After: 1',
    ];
    expect(await seen(['HTTP/1.1 200 OK', ...kept, 'Content-Length: 2'])).toEqual([
      'HTTP/1.1 200 OK',
      ...kept,
      'Content-Length: 2',
      ...OWN,
    ]);
  });

  it('frames a response that ends with its connection in chunks of its own', async () => {
    const lines = await seen(['HTTP/1.1 200 OK', 'X-A: 1']);
    expect(lines).toEqual(['HTTP/1.1 200 OK', 'X-A: 1', ...OWN, 'Transfer-Encoding: chunked']);
  });

  it.each([
    ['HEAD', 'HTTP/1.1 200 OK', ['Content-Type: a/b', 'Content-Length: 1234', 'Content-Encoding: gzip']],
    ['HEAD', 'HTTP/1.1 404 Not Found', ['Content-Length: 9']],
    ['POST', 'HTTP/1.1 204 No Content', ['X-A: 1']],
    ['POST', 'HTTP/1.1 304 Not Modified', ['ETag: "x"', 'Content-Length: 1234']],
  ])('carries the headers of a response without a body: %s %s', async (method, status, headers) => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write(`${[status, ...headers].join('\r\n')}\r\n\r\n`);
    };
    const reply = await wire.call(`${method} /v1/chat/completions`);
    expect(reply.head.split('\r\n').slice(0, -3)).toEqual([status, ...headers]);
    expect(reply.header('transfer-encoding')).toBeUndefined();
    await wire.expectSound(1);
  });
});

describe('large headers', () => {
  let wire: Wire;

  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterAll(() => wire.stop());

  const LINE = 'POST /v1/chat/completions';

  it.each([
    ['one header of 64 KiB', [`X-Large: ${'x'.repeat(65_536)}`]],
    ['64 KiB in many', Array.from({ length: 700 }, (_, i) => `X-${i}: ${'x'.repeat(100)}`)],
    ['a megabyte', [`X-Large: ${'x'.repeat(1_000_000)}`]],
    ['a name of 64 KiB', [`${'X'.repeat(65_536)}: x`]],
  ])('rejects %s with 431 in our shape and closes', async (_, headers) => {
    const client = await wire.connect();
    client.send(request(LINE, [wire.auth, ...headers], '{}'));
    const reply = await client.answer();
    wire.expectRejection(reply, 431, 'headers_too_large');
    expect([reply.header('connection'), reply.header('x-should-retry')]).toEqual(['close', 'false']);
    await client.closed;
    await wire.expectSound(0);
  });

  it('rejects a target of 64 KiB with 431', async () => {
    const [reply] = await wire.send(request(`GET /v1/models?${'x'.repeat(65_536)}`, [wire.auth]));
    wire.expectRejection(reply, 431, 'headers_too_large');
    await wire.expectSound(0);
  });

  never.each([
    ['60 KB in one header', [`X-Large: ${'x'.repeat(60_000)}`]],
    ['60 KB in many', Array.from({ length: 600 }, (_, i) => `X-${i}: ${'x'.repeat(94)}`)],
    ['1,500 small headers', Array.from({ length: 1_500 }, (_, i) => `X-${i}: ${i}`)],
    ['1,500 headers of one name', Array.from({ length: 1_500 }, (_, i) => `X-Same: ${i}`)],
  ])('carries %s whole', async (_, headers) => {
    // The credential comes last: it must be found behind all others.
    const [reply] = await wire.send(request(LINE, [...headers, wire.auth], '{}'));
    expect(reply!.status).toBe(200);
    const seen = wire.provider.requests.at(-1)!.headers.filter(([name]) => name.startsWith('X-'));
    expect(seen.map(([name, value]) => `${name}: ${value}`)).toEqual(headers);
    await wire.expectSound(1);
  });

  it('carries a target of 60 KB', async () => {
    const target = `/v1/models?${'x'.repeat(60_000)}`;
    expect((await wire.call(`GET ${target}`)).header('x-target')).toBe(target);
    await wire.expectSound(1);
  });

  it.each([
    ['60 KB in one header', [`X-Large: ${'x'.repeat(60_000)}`]],
    ['1,500 small headers', Array.from({ length: 1_500 }, (_, i) => `X-${i}: ${i}`)],
  ])("carries a provider's %s whole", async (_, headers) => {
    wire.provider.script = (req) => {
      req.socket.write(['HTTP/1.1 200 OK', ...headers, 'Content-Length: 0', '', ''].join('\r\n'));
    };
    const reply = await wire.call('GET /v1/models');
    expect(reply.headers.slice(0, headers.length).map(([name, value]) => `${name}: ${value}`)).toEqual(
      headers,
    );
    await wire.expectSound(1);
  });

  it("answers 502 to a provider's head of more than 64 KiB", async () => {
    wire.provider.script = (req) => {
      req.socket.write(`HTTP/1.1 200 OK\r\nX-Large: ${'x'.repeat(70_000)}\r\nContent-Length: 0\r\n\r\n`);
    };
    wire.expectRejection(await wire.call('GET /v1/models'), 502, 'upstream_invalid_response');
    await wire.expectSound(1);
  });
});
