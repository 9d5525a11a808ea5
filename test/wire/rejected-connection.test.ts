import { ADMIN_TOKEN } from '../support/gateway.js';
import { never } from '../support/never.js';
import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

/** Requests after which the framing of the connection cannot be trusted, or whose body will not come. */
const CLOSING: [what: string, headers: string[], body: string][] = [
  ['Transfer-Encoding: gzip, chunked', ['Transfer-Encoding: gzip, chunked'], '0\r\n\r\n'],
  ['two Hosts', ['Host: other.test'], ''],
  ['two Authorizations', ['Authorization: Bearer x'], ''],
  ['another Expect', ['Expect: the-spanish-inquisition'], ''],
];

never.each(CLOSING)(
  'takes nothing that follows %s in the same packet for a request',
  async (what, headers, body) => {
    const name = `smuggled by ${what}`;
    const client = await wire.connect();
    client.send(
      Buffer.concat([
        request('POST /v1/chat/completions', [wire.auth, ...headers], body),
        request('POST /admin/v1/teams', [`Authorization: Bearer ${ADMIN_TOKEN}`], JSON.stringify({ name })),
        request('POST /v1/chat/completions', [wire.auth], '{}'),
      ]),
    );
    const rejection = await client.answer();
    expect(rejection.header('connection')).toBe('close');
    await client.closed;
    expect(client.reader.rest).toHaveLength(0);
    await wire.expectSound(0);
    const teams = await wire.gateway.admin<{ data: { name: string }[] }>('GET', '/teams');
    expect(teams.data.map((team) => team.name)).toEqual(['default']);
  },
);

never.each(CLOSING)(
  'takes nothing that comes after the response to %s for a request',
  async (_, headers, body) => {
    const client = await wire.connect();
    client.send(request('POST /v1/chat/completions', [wire.auth, ...headers], body));
    await client.answer();
    client.send(request('POST /v1/chat/completions', [wire.auth], '{}'));
    await client.closed;
    expect(client.reader.rest).toHaveLength(0);
    await wire.expectSound(0);
  },
);

it.each([
  ['an unknown Transfer-Encoding', 'Transfer-Encoding: gzip, chunked'],
  ['a head that does not parse', 'No colon'],
  ['a head that is too large', `X-Large: ${'x'.repeat(70_000)}`],
])('lets a client that is still sending read the response to %s', async (_, header) => {
  const client = await wire.connect();
  // What the gateway has not read when it closes would reset the connection, and the reset discard the answer.
  for (let sent = 0; sent < 20; sent++) {
    client.send(
      sent === 0
        ? request('POST /v1/chat/completions', [wire.auth, header], 'x'.repeat(50_000))
        : 'x'.repeat(50_000),
    );
    await new Promise((resolve) => setImmediate(resolve));
  }
  let reset = false;
  client.socket.on('error', () => (reset = true));
  expect([400, 431]).toContain((await client.answer()).status);
  client.socket.end();
  await client.closed;
  expect(reset).toBe(false);
  await wire.expectSound(0);
});
