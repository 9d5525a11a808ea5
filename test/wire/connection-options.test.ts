import { PROVIDER_KEY } from '../support/gateway.js';
import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

/** The names that reached the provider beyond what every request carries. */
async function passed(headers: string[]): Promise<string[]> {
  const [reply] = await wire.send(request('POST /v1/chat/completions', [wire.auth, ...headers], '{}'));
  expect([reply!.status, reply!.body.toString()]).toEqual([200, '{}']);
  const { headers: seen } = wire.provider.requests.at(-1)!;
  expect(seen).toContainEqual(['Authorization', `Bearer ${PROVIDER_KEY}`]);
  await wire.expectSound(1);
  const always = ['host', 'connection', 'authorization', 'content-length'];
  return seen.map(([name]) => name).filter((name) => !always.includes(name.toLowerCase()));
}

/** RFC 9110 7.6.1: what `Connection` lists is for this hop alone. */
it.each([
  ['one name', ['Connection: x-foo']],
  ['another case', ['connection: X-FOO']],
  ['a list', ['Connection: keep-alive , x-foo']],
  ['empty elements', ['Connection: ,, x-foo,']],
  ['tabs', ['Connection: \tx-foo\t,\tkeep-alive']],
  ['two lines', ['Connection: keep-alive', 'Connection: x-foo']],
  ['close as well', ['Connection: close, x-foo']],
])('drops what Connection lists: %s', async (_, connection) => {
  expect(await passed(['X-Foo: 1', ...connection, 'X-Bar: 2', 'x-foo: 3'])).toEqual(['X-Bar']);
});

it('does not let Connection take away what the call needs', async () => {
  const list =
    'authorization, content-length, content-type, content-encoding, host, idempotency-key, x-api-key';
  expect(
    await passed([
      `Connection: ${list}, transfer-encoding, connection`,
      'Content-Type: a/b',
      'Idempotency-Key: 1',
    ]),
  ).toEqual(['Content-Type', 'Idempotency-Key']);
});

it.each(['__proto__', 'constructor', 'hasOwnProperty'])(
  'takes %s for a name like any other',
  async (name) => {
    expect(await passed([`${name}: 1`, 'X-Bar: 2'])).toEqual([name, 'X-Bar']);
    expect(await passed([`${name}: 1`, `Connection: ${name}`, 'X-Bar: 2'])).toEqual(['X-Bar']);
  },
);

it('does the same with what a provider lists', async () => {
  wire.provider.script = async (req) => {
    await req.body;
    const head =
      'HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Foo, content-length, content-type, x-gateway-request-id';
    req.socket.write(`${head}\r\nX-Foo: 1\r\nContent-Type: a/b\r\nX-Bar: 2\r\nContent-Length: 2\r\n\r\nok`);
  };
  const reply = await wire.call('POST /v1/chat/completions', [], '{}');
  expect(reply.headers.slice(0, -2)).toEqual([
    ['Content-Type', 'a/b'],
    ['X-Bar', '2'],
    ['Content-Length', '2'],
    ['x-gateway-request-id', expect.any(String)],
  ]);
  expect(reply.headers.slice(-2).map(([name]) => name)).toEqual(['Connection', 'Keep-Alive']);
  await wire.expectSound(1);
});
