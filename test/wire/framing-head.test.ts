import { randomBytes } from 'node:crypto';
import { never } from '../support/never.js';
import { request } from '../support/raw-client.js';
import { responsesOn, Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

describe('a head that Node rejects', () => {
  const BROKEN: [what: string, lines: string[]][] = [
    ['a length that is none', ['Content-Length: 1x']],
    ['two kinds of framing', ['Content-Length: 1', 'Transfer-Encoding: chunked']],
    ['a line without a colon', ['No colon']],
  ];

  async function responseTo(...requests: Buffer[]): Promise<[head: string, body: string]> {
    const client = await wire.connect();
    client.send(Buffer.concat(requests));
    await client.closed;
    const text = client.reader.rest.toString('latin1');
    const end = text.lastIndexOf('\r\n\r\n') + 4;
    return [text.slice(text.lastIndexOf('HTTP/1.1 4'), end), text.slice(end)];
  }
  const named = (head: string) => head.split('\r\n').map((line) => line.replace(/(id|Date): .*/, '$1'));

  // RFC 9110 9.3.2: the same headers as for another method, and no body.
  it.each(BROKEN)('gets a response without a body if it is of HEAD, with %s', async (_, lines) => {
    const [head, body] = await responseTo(request('HEAD /v1/models', lines));
    const [otherHead, otherBody] = await responseTo(request('GET /v1/models', lines));
    expect(body).toBe('');
    expect(named(head)).toEqual(named(otherHead));
    expect(head).toContain(`content-length: ${otherBody.length}\r\n`);
    expect(JSON.parse(otherBody)).toMatchObject({ error: { code: expect.any(String) as string } });
  });

  it('is recognised behind an empty line', async () => {
    const bytes = Buffer.concat([Buffer.from('\r\n'), request('HEAD /v1/models', ['No colon'])]);
    expect((await responseTo(bytes))[1]).toBe('');
  });

  const broken = (method: string) => request(`${method} /v1/models`, ['No colon']);
  const post = (body: string) => request('POST /elsewhere', [], body);

  // Where it is not certain that it is of HEAD, a body that is announced must come.
  it.each([
    ['a HEAD', () => [request('HEAD /elsewhere', []), broken('GET')]],
    ['a body that looks like a HEAD', () => [post('\r\n\r\nHEAD /'), broken('GET')]],
    ['a body, as a HEAD', () => [post('a body'), broken('HEAD')]],
    ['a HEAD, with nothing of its own parsed', () => [request('HEAD /elsewhere', []), Buffer.from('\0')]],
  ])('keeps its body behind %s in the same packet', async (_, requests) => {
    const [head, body] = await responseTo(...requests());
    expect(body).toContain('invalid_request');
    expect(head).toContain(`content-length: ${body.length}\r\n`);
  });

  it.each([
    ['target', 'GET /v1/models?', 'HEAD /v1/models HTTP/1.1\r\nNo colon\r\n\r\n'],
    ['header', 'GET /v1/models HTTP/1.1\r\nX: ', 'HEAD \0\r\n\r\n'],
  ])('keeps its body if an earlier packet began its %s', async (_, first, second) => {
    const client = await wire.connect();
    client.send(first);
    // The first packet was read by the time that a later connection was served.
    const other = await wire.connect();
    other.send('NONSENSE\r\n\r\n');
    await other.answer();
    client.send(second);
    wire.expectRejection(await client.answer(), 400, 'invalid_request');
    await client.closed;
  });

  it('gets a response with a Date', async () => {
    const asked = Date.now();
    const [reply] = await wire.send(request('GET /v1/models', ['No colon']));
    expect(new Date(reply!.header('date')!).getTime()).toBeGreaterThan(asked - 60_000);
  });
});

describe('authorization', () => {
  let wire: Wire;
  let key: string;

  beforeAll(async () => {
    wire = await Wire.start();
    key = wire.gateway.key;
  });
  afterAll(() => wire.stop());

  const line = 'POST /v1/chat/completions';

  never.each([
    ['good and bad', () => [`Authorization: Bearer ${key}`, 'Authorization: Bearer x']],
    ['bad and good', () => ['Authorization: Bearer x', `Authorization: Bearer ${key}`]],
    [
      'twice the same, in other cases',
      () => [`AUTHORIZATION: Bearer ${key}`, `authorization: Bearer ${key}`],
    ],
    ['good and empty', () => [`Authorization: Bearer ${key}`, 'Authorization:']],
    ['good and Basic', () => [`Authorization: Bearer ${key}`, 'Authorization: Basic eDp5']],
  ])('rejects two Authorization lines with 400 and closes: %s', async (_, headers) => {
    const client = await wire.connect();
    client.send(request(line, headers(), '{}'));
    wire.expectRejection(await client.answer(), 400, 'invalid_request');
    await client.closed;
    await wire.expectSound(0);
  });

  never.each([
    ['none', () => []],
    ['a list', () => [`Authorization: Bearer ${key}, Bearer ${key}`]],
    ['a tab for the space', () => [`Authorization: Bearer\t${key}`]],
    ['no scheme', () => [`Authorization: ${key}`]],
    ['no space', () => [`Authorization: Bearer${key}`]],
    ['quotes', () => [`Authorization: Bearer "${key}"`]],
    ['8 KB', () => [`Authorization: Bearer ${key}${'x'.repeat(8_192)}`]],
    ['bytes outside ASCII', () => [`Authorization: Bearer ${key.slice(0, -1)}\xe9`]],
    ['another case of the key', () => [`Authorization: Bearer ${key.toUpperCase()}`]],
    ['a cookie', () => [`Cookie: authorization=Bearer ${key}; access_token=${key}`]],
    ['only Proxy-Authorization', () => [`Proxy-Authorization: Bearer ${key}`]],
  ])('answers 401 and keeps the connection: %s', async (_, headers) => {
    const client = await wire.connect();
    client.send(request(line, headers(), `{"access_token":"${key}"}`));
    wire.expectRejection(await client.answer(), 401, 'invalid_api_key');
    client.send(request(line, [`Authorization: Bearer ${key}`], '{}'));
    expect((await client.answer()).status).toBe(200);
    client.destroy();
    await wire.expectSound(1);
  });
});

describe('host', () => {
  const get = (version: string, ...headers: string[]) =>
    [`GET /v1/models HTTP/${version}`, wire.auth, ...headers, '', ''].join('\r\n');

  /** RFC 9112 3.2: exactly one Host, with a valid value. */
  never.each([
    ['no Host', []],
    ['two Hosts', ['Host: a.test', 'Host: b.test']],
    ['the same Host twice', ['Host: a.test', 'host: a.test']],
    ['an empty Host', ['Host:']],
    ['a port alone', ['Host: :80']],
    ['a list', ['Host: a.test, b.test']],
    ['a path', ['Host: a.test/v1']],
    ['user info', ['Host: user@a.test']],
    ['a backslash', ['Host: a.test\\b']],
    ['a query', ['Host: a.test?b']],
    ['a fragment', ['Host: a.test#b']],
    ['quotes', ['Host: "a.test"']],
    ['bytes outside ASCII', ['Host: \xe9.test']],
    ['a tab inside', ['Host: a\tb']],
  ])('rejects %s with 400 and closes', async (_, headers) => {
    const client = await wire.connect();
    client.send(get('1.1', ...headers));
    wire.expectRejection(await client.answer(), 400, 'invalid_request');
    await client.closed;
    await wire.expectSound(0);
  });

  it('rejects two Hosts on HTTP/1.0 too', async () => {
    const [reply] = await wire.send(get('1.0', 'Host: a.test', 'Host: b.test'));
    wire.expectRejection(reply, 400, 'invalid_request');
    await wire.expectSound(0);
  });

  never.each([
    ['1.1', ['Host: gateway.test:8080']],
    ['1.1', ['HOST: 127.0.0.1']],
    ['1.1', ['Host: [::1]:8080']],
    ['1.1', ['Host: under_score.test']],
    ['1.0', ['Host: gateway.test']],
    ['1.0', []],
  ])('takes HTTP/%s with %j, and the provider sees its own Host alone', async (version, headers) => {
    const [reply] = await wire.send(get(version, ...headers));
    expect(reply!.status).toBe(200);
    const hosts = wire.provider.requests.at(-1)!.headers.filter(([name]) => name.toLowerCase() === 'host');
    expect(hosts).toEqual([['host', new URL(wire.provider.url).host]]);
    await wire.expectSound(1);
  });
});

describe('line endings', () => {
  /** RFC 9112 2.2, 5.1, 5.2: what two hops could cut into lines, names and values differently. AUTH holds a good key. */
  never.each([
    ['a bare LF after the request line', 'GET /v1/models HTTP/1.1\nHost: g\r\nAUTH\r\n\r\n'],
    ['a bare LF after a header', 'GET /v1/models HTTP/1.1\r\nHost: g\nAUTH\r\n\r\n'],
    ['a bare LF for the empty line', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nAUTH\r\n\n'],
    ['bare LFs everywhere', 'GET /v1/models HTTP/1.1\nHost: g\nAUTH\n\n'],
    ['a bare CR in a value', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX: a\rX-Smuggled: b\r\nAUTH\r\n\r\n'],
    ['a bare CR after a header', 'GET /v1/models HTTP/1.1\r\nHost: g\rAUTH\r\n\r\n'],
    ['two CRs', 'GET /v1/models HTTP/1.1\r\nHost: g\r\r\nAUTH\r\n\r\n'],
    ['a folded header', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX: a\r\n b\r\nAUTH\r\n\r\n'],
    ['a header folded by a tab', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX: a\r\n\tb\r\nAUTH\r\n\r\n'],
    ['a folded Authorization', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nAUTH\r\n x\r\n\r\n'],
    ['a blank before the first header', 'GET /v1/models HTTP/1.1\r\n Host: g\r\nAUTH\r\n\r\n'],
    ['a blank before the colon', 'GET /v1/models HTTP/1.1\r\nHost : g\r\nAUTH\r\n\r\n'],
    ['a tab before the colon', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX\t: a\r\nAUTH\r\n\r\n'],
    ['a header without a colon', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX\r\nAUTH\r\n\r\n'],
    ['a header without a name', 'GET /v1/models HTTP/1.1\r\nHost: g\r\n: a\r\nAUTH\r\n\r\n'],
    ['a name that is no token', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX(a): b\r\nAUTH\r\n\r\n'],
    ['a name outside ASCII', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX\xe9: b\r\nAUTH\r\n\r\n'],
    ['NUL in a name', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX\0: b\r\nAUTH\r\n\r\n'],
    ['NUL in a value', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX: a\0b\r\nAUTH\r\n\r\n'],
    ['a control byte in a value', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX: a\x01b\r\nAUTH\r\n\r\n'],
    ['DEL in a value', 'GET /v1/models HTTP/1.1\r\nHost: g\r\nX: a\x7fb\r\nAUTH\r\n\r\n'],
    ['a blank after the version', 'GET /v1/models HTTP/1.1 \r\nHost: g\r\nAUTH\r\n\r\n'],
    ['a word after the version', 'GET /v1/models HTTP/1.1 x\r\nHost: g\r\nAUTH\r\n\r\n'],
    ['a lower-case version', 'GET /v1/models http/1.1\r\nHost: g\r\nAUTH\r\n\r\n'],
    ['HTTP/1.2', 'GET /v1/models HTTP/1.2\r\nHost: g\r\nAUTH\r\n\r\n'],
    ['HTTP/1.10', 'GET /v1/models HTTP/1.10\r\nHost: g\r\nAUTH\r\n\r\n'],
    ['HTTP/2.0', 'GET /v1/models HTTP/2.0\r\nHost: g\r\nAUTH\r\n\r\n'],
    ['HTTP/0.9', 'GET /v1/models HTTP/0.9\r\nHost: g\r\nAUTH\r\n\r\n'],
    ['a request line of HTTP/0.9', 'GET /v1/models\r\nAUTH\r\n\r\n'],
    ['a method after a blank', ' GET /v1/models HTTP/1.1\r\nHost: g\r\nAUTH\r\n\r\n'],
    ['no target', 'GET HTTP/1.1\r\nHost: g\r\nAUTH\r\n\r\n'],
  ])('rejects %s with 400 and closes', async (_, bytes) => {
    const client = await wire.connect();
    client.send(bytes.replace('AUTH', wire.auth));
    const reply = await client.answer();
    expect(['invalid_request', 'invalid_path']).toContain(reply.header('x-gateway-error'));
    wire.expectRejection(reply, 400, reply.header('x-gateway-error')!);
    await client.closed;
    await wire.expectSound(0);
  });

  it('takes empty lines before a request for none of it (RFC 9112 2.2)', async () => {
    const [reply] = await wire.send(`\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: g\r\n${wire.auth}\r\n\r\n`);
    expect(reply!.status).toBe(200);
    await wire.expectSound(1);
  });
});

describe('not HTTP', () => {
  const TLS_HELLO = Buffer.from('16030100c8010000c40303', 'hex');

  it.each([
    ['an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
    ['a TLS hello', Buffer.concat([TLS_HELLO, randomBytes(200)])],
    ['an SSH greeting', 'SSH-2.0-OpenSSH_9.9\r\n'],
    ['a SOCKS greeting', '\x05\x01\x00'],
    [
      'a PROXY header',
      'PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\nGET /v1/models HTTP/1.1\r\nHost: g\r\nAUTH\r\n\r\n',
    ],
    ['an answer', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
    ['SMTP', 'EHLO example.org\r\n'],
    ['NUL bytes', Buffer.alloc(1_000)],
    ['bytes of every value', Buffer.from(Array.from({ length: 256 }, (_, i) => i))],
    ['an endless first line', Buffer.alloc(200_000, 'G')],
    ['Unicode', 'ＧＥＴ /v1/models HTTP/1.1\r\n\r\n'],
  ])('answers %s with a 400 of ours and closes', async (_, bytes) => {
    const client = await wire.connect();
    client.send(typeof bytes === 'string' ? Buffer.from(bytes.replace('AUTH', wire.auth), 'utf8') : bytes);
    const [reply, second] = await responsesOn(client, 2);
    wire.expectRejection(reply, 400, 'invalid_request');
    expect(reply!.header('connection')).toBe('close');
    expect(second).toBeUndefined();
    await client.closed;
    await wire.expectSound(0);
  });
});

describe('slow headers', () => {
  let wire: Wire;

  beforeAll(async () => {
    wire = await Wire.start({ CLIENT_HEADERS_TIMEOUT_MS: '2000' });
  });
  afterAll(() => wire.stop());

  it.each([
    ['nothing', ''],
    ['half a request line', 'POST /v1/ch'],
    ['half a head', 'POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nX-Slo'],
    ['a head without its end', 'POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAUTH\r\n'],
    ['half an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\n'],
  ])('answers 408 in our shape to a client that stops after %s', async (_, bytes) => {
    const client = await wire.connect();
    if (bytes !== '') client.send(bytes.replace('AUTH', wire.auth));
    const reply = await client.answer();
    wire.expectRejection(reply, 408, 'request_timeout');
    expect([reply.header('connection'), reply.header('x-should-retry')]).toEqual(['close', undefined]);
    client.send('the rest, too late\r\n\r\n');
    await client.closed;
    await wire.expectSound(0);
  });

  it('answers 408 to the slow second request of a connection, after the first was answered', async () => {
    const client = await wire.connect();
    client.send(request('POST /v1/chat/completions', [wire.auth], 'first'));
    client.send('POST /v1/chat/completions HTTP/1.1\r\nHo');
    const [first, second] = await responsesOn(client, 3);
    expect(first!.body.toString()).toBe('first');
    wire.expectRejection(second, 408, 'request_timeout');
    await client.closed;
    await wire.expectSound(1);
  });
});
