import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
let key: string;

beforeAll(async () => {
  wire = await Wire.start();
  key = wire.auth.slice('Authorization: Bearer '.length);
});
afterAll(() => wire.stop());

/** A key that a client put in a second place must not travel on with it. */
it.each([
  ['User-Agent', 'User-Agent: tool/1.0 KEY'],
  ['Idempotency-Key', 'Idempotency-Key: KEY'],
  ['a header of its own', 'X-Token: KEY'],
  ['a URL', 'Referer: https://app.test/?key=KEY&x'],
  ['a quoted string', 'X-Debug: {"key":"KEY"}'],
  ['amid other letters', 'X-Token: xxKEYxx'],
  ['a name', 'KEY: x'],
  ['a name, with more', 'X-KEY-1: x'],
  ['the second of two', 'X-Fine: KEY'],
])('drops a header that holds the key: %s', async (_, header) => {
  const sent = [wire.auth, 'X-Fine: 1', header.replace('KEY', key), 'X-Also-Fine: 2'];
  const [reply] = await wire.send(request('POST /v1/chat/completions', sent, '{}'));
  expect(reply!.status).toBe(200);
  const { head, headers } = wire.provider.requests.at(-1)!;
  expect(head).not.toContain(key);
  expect(headers.map(([name]) => name)).toEqual([
    'host',
    'connection',
    'Authorization',
    'X-Fine',
    'X-Also-Fine',
    'content-length',
  ]);
  const [row] = await wire.gateway.database.query(
    'SELECT 1 FROM request_log WHERE request_log::text LIKE $1',
    [`%${key}%`],
  );
  expect(row).toBeUndefined();
  await wire.expectSound(1);
});

it('leaves a key in the body alone: the body is opaque', async () => {
  const reply = await wire.call('POST /v1/chat/completions', [], `{"key":"${key}"}`);
  expect(reply.body.toString()).toBe(`{"key":"${key}"}`);
  await wire.expectSound(1);
});
