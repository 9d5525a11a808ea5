import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

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
])('refuses %s with 431 in our shape and closes', async (_, headers) => {
  const client = await wire.connect();
  client.send(request(LINE, [wire.auth, ...headers], '{}'));
  const reply = await client.answer();
  wire.expectRefusal(reply, 431, 'headers_too_large');
  expect([reply.header('connection'), reply.header('x-should-retry')]).toEqual(['close', 'false']);
  await client.closed;
  await wire.expectSound(0);
});

it('refuses a target of 64 KiB with 431', async () => {
  const [reply] = await wire.send(request(`GET /v1/models?${'x'.repeat(65_536)}`, [wire.auth]));
  wire.expectRefusal(reply, 431, 'headers_too_large');
  await wire.expectSound(0);
});

it.each([
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
  expect(reply.headers.slice(0, headers.length).map(([name, value]) => `${name}: ${value}`)).toEqual(headers);
  await wire.expectSound(1);
});

it("answers 502 to a provider's head of more than 64 KiB", async () => {
  wire.provider.script = (req) => {
    req.socket.write(`HTTP/1.1 200 OK\r\nX-Large: ${'x'.repeat(70_000)}\r\nContent-Length: 0\r\n\r\n`);
  };
  wire.expectRefusal(await wire.call('GET /v1/models'), 502, 'upstream_invalid_response');
  await wire.expectSound(1);
});
