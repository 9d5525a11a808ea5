import { chunk } from '../support/raw-provider.js';
import { RawClient } from '../support/raw-client.js';
import { replies, Routed } from './routed.js';

let routed: Routed;
let name: string;
beforeAll(async () => {
  routed = await Routed.start();
  const targets = [{ provider: 'a' }, { provider: 'b', models: { big: 'big "eu"', same: 'same' } }];
  name = await routed.route({ targets });
});
afterAll(() => routed.gateway.stop());
beforeEach(() => routed.script({ a: replies('429 X') }));

const JSON_TYPE = ['Content-Type: application/json'];
const received = async (provider: 'a' | 'b') =>
  (await routed.providers[provider].requests[0]!.body).bytes.toString();

it('replaces the value of the one model member and no other byte, for that target only', async () => {
  const body = '\n{"a": {"model":"big"},"b":"big",\t"model" :  "b\\u0069g" , "n":1.0}';
  const reply = await routed.call(name, JSON_TYPE, body);
  expect([reply.status, reply.body.toString(), reply.header('x-gateway-altered')]).toEqual([
    200,
    'b',
    'model',
  ]);
  expect(await received('a')).toBe(body);
  expect(await received('b')).toBe(body.replace('"b\\u0069g"', '"big \\"eu\\""'));
  const rows = await routed.rows(reply);
  expect(rows.map(({ model, altered }) => [model, altered])).toEqual([
    ['big', null],
    ['big "eu"', 'model'],
  ]);
});

it('replaces it in a chunked body and in a large one, and beside another change', async () => {
  const body = JSON.stringify({ filler: 'x'.repeat(400_000), model: 'big' });
  await routed.call(name, JSON_TYPE, body);
  expect(await received('b')).toBe(body.replace('"big"', '"big \\"eu\\""'));

  routed.script({ a: replies('429 X') });
  const key = await routed.gateway.createKey({ stream_usage: 'ask' });
  const client = await RawClient.connect(routed.gateway.port);
  const head = `POST /p/${name}/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json`;
  client.send(`${head}\r\nAuthorization: Bearer ${key}\r\nTransfer-Encoding: chunked\r\n\r\n`);
  client.send(Buffer.concat([chunk('{"model":"b'), chunk('ig","stream":true}'), Buffer.from('0\r\n\r\n')]));
  const reply = await client.answer();
  client.destroy();
  expect(reply.header('x-gateway-altered')).toBe('stream_usage, model');
  const asked = '{"stream_options":{"include_usage":true},"model":"big","stream":true}';
  expect(await received('a')).toBe(asked);
  expect(await received('b')).toBe(asked.replace('"big"', '"big \\"eu\\""'));
});

it.each([
  ['another model', '{"model":"small"}'],
  ['the same model', '{"model":"same"}'],
])('leaves the bytes for %s', async (_, body) => {
  const reply = await routed.call(name, JSON_TYPE, body);
  expect([await received('b'), reply.header('x-gateway-altered')]).toEqual([body, undefined]);
});

it.each([
  ['two models', '{"model":"big","Model":"x"}'],
  ['no model', '{}'],
  ['no JSON', 'model=big'],
])('sends a body with %s to no target that has models of its own', async (_, body) => {
  const reply = await routed.call(name, JSON_TYPE, body);
  expect([reply.status, routed.counts]).toEqual([429, [1, 0, 0]]);
  const only = await routed.route({ targets: [{ provider: 'b', models: { big: 'other' } }] });
  const rejected = await routed.call(only, JSON_TYPE, body);
  expect([rejected.status, rejected.header('x-gateway-error')]).toEqual([400, 'model_not_determined']);
  expect(routed.counts).toEqual([1, 0, 0]);
});

it('rejects inference calls of another API than that of its targets', async () => {
  const openai = await routed.route({ dialect: 'openai' });
  const anthropic = await routed.route({ dialect: 'anthropic' });
  routed.script({});
  const status = async (route: string, path: string) => (await routed.send(`POST /p/${route}${path}`)).status;
  expect([await status(openai, '/v1/messages'), await status(openai, '/v1/responses')]).toEqual([403, 200]);
  expect([await status(anthropic, '/v1/messages'), await status(anthropic, '/v1/responses')]).toEqual([
    200, 403,
  ]);
});
