import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const get = (version: string, ...headers: string[]) =>
  [`GET /v1/models HTTP/${version}`, wire.auth, ...headers, '', ''].join('\r\n');

/** RFC 9112 3.2: exactly one Host, with a valid value. */
it.each([
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
])('refuses %s with 400 and closes', async (_, headers) => {
  const client = await wire.connect();
  client.send(get('1.1', ...headers));
  wire.expectRefusal(await client.answer(), 400, 'invalid_request');
  await client.closed;
  await wire.expectSound(0);
});

it('refuses two Hosts on HTTP/1.0 too', async () => {
  const [reply] = await wire.send(get('1.0', 'Host: a.test', 'Host: b.test'));
  wire.expectRefusal(reply, 400, 'invalid_request');
  await wire.expectSound(0);
});

it.each([
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
