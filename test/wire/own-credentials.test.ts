import { never } from '../support/never.js';
import { request } from '../support/raw-client.js';
import { answer } from '../support/raw-provider.js';
import { echo, Wire } from '../support/wire.js';

const TOKEN = 'sk-ant-oat01-0123456789-own';
const OWN = [`authorization: Bearer  ${TOKEN}`, 'X-API-Key: sk-own-0123456789', 'Api-Key: own-azure-key'];

let wire: Wire;
let own: string;
beforeAll(async () => {
  wire = await Wire.start();
  await wire.gateway.admin('POST', '/providers', {
    name: 'own',
    url: wire.provider.url,
    auth: 'client',
    secret: null,
  });
  own = `X-Gateway-Key: ${wire.gateway.key}`;
});
afterAll(() => wire.stop());

async function call(line: string, headers: string[], body = '{}') {
  const client = await wire.connect();
  client.send(request(line, headers, body));
  const reply = await client.answer();
  client.destroy();
  return reply;
}

const seen = () => wire.provider.requests.at(-1)!;
const credentials = () =>
  seen().headers.filter(([name]) => /^(?:authorization|x-api-key|api-key|x-gateway-key)$/i.test(name));

never(
  "forwards the caller's own credentials as they are, in their places, and never the gateway key",
  async () => {
    const headers = [
      'X-First: 1',
      OWN[0]!,
      own,
      OWN[1]!,
      `X-Copy: ${wire.gateway.key}`,
      OWN[2]!,
      'X-Last: 1',
    ];
    const reply = await call('POST /p/own/v1/messages?beta=true', headers);
    expect(reply.status).toBe(200);
    expect(seen().head).not.toContain(wire.gateway.key);
    const sent = seen().headers.filter(([name]) => !/^(?:host|connection|content-length)$/i.test(name));
    expect(sent).toEqual([
      ['X-First', '1'],
      ['authorization', `Bearer  ${TOKEN}`],
      ['X-API-Key', 'sk-own-0123456789'],
      ['Api-Key', 'own-azure-key'],
      ['X-Last', '1'],
    ]);
  },
);

never('sends a provider with a secret that secret and nothing of the caller', async () => {
  expect((await call('POST /v1/chat/completions', [own, ...OWN])).status).toBe(200);
  expect(credentials().map(([name]) => name)).toEqual(['Authorization']);
  expect(seen().head).not.toMatch(/own/);
});

never('forwards no gateway key as a credential, whichever header it is in', async () => {
  const { key } = wire.gateway;
  expect((await call('POST /p/own/v1/messages', [`Authorization: Bearer ${key}`])).status).toBe(200);
  expect(credentials()).toEqual([]);
  expect((await call('POST /p/own/v1/messages', [own, `x-api-key: ${key}`, OWN[0]!])).status).toBe(200);
  expect(credentials()).toEqual([['authorization', `Bearer  ${TOKEN}`]]);
});

never.each([
  ['malformed', ['X-Gateway-Key: nothing'], 401, 'invalid_api_key'],
  ['empty', ['X-Gateway-Key:'], 401, 'invalid_api_key'],
  ['a Bearer token', ['X-Gateway-Key: Bearer KEY'], 401, 'invalid_api_key'],
  ['repeated', ['X-Gateway-Key: KEY', 'x-gateway-key: KEY'], 400, 'invalid_request'],
])('alone is the key: %s, with good keys beside it', async (_, lines, status, code) => {
  const { key } = wire.gateway;
  const { length } = wire.provider.requests;
  const headers = [...lines.map((line) => line.replace('KEY', key)), `Authorization: Bearer ${key}`];
  wire.expectRejection(await call('POST /v1/chat/completions', headers), status, code);
  expect(wire.provider.requests).toHaveLength(length);
});

it('is accepted for the data of the key itself', async () => {
  const response = await fetch(`${wire.gateway.url}/self/v1/key`, {
    headers: { 'x-gateway-key': wire.gateway.key, authorization: `Bearer ${TOKEN}` },
  });
  expect([response.status, ((await response.json()) as { name: string }).name]).toEqual([200, 'first']);
});

never('keeps no text that holds a credential of the caller in its row', async () => {
  wire.provider.script = async ({ body, socket }) => {
    await body;
    const json = JSON.stringify({ model: `m-${TOKEN}`, usage: { input_tokens: 3, output_tokens: 1 } });
    const head = ['Content-Type: application/json', `Request-Id: req-${TOKEN}`];
    socket.write(answer('200 OK', head, json));
  };
  const reply = await call('POST /p/own/v1/messages', [
    own,
    ...OWN,
    `User-Agent: agent ${TOKEN}`,
    'Idempotency-Key: sk-own-0123456789',
    `X-Gateway-User: ${TOKEN}`,
    'X-Gateway-Session: x-own-azure-key',
    `X-Gateway-Tags: a=${TOKEN}`,
  ]);
  expect(reply.header('request-id')).toBe(`req-${TOKEN}`);
  const row = await wire.gateway.row(reply.header('x-gateway-request-id')!);
  expect(row).toMatchObject({
    prompt_tokens: 3,
    model: null,
    user_agent: null,
    idempotency_key: null,
    end_user: null,
    session_id: null,
    tags: null,
    provider_request_id: null,
  });
  wire.provider.script = echo;
});

it("does not replay one caller's response to another with the same gateway key", async () => {
  const key = await wire.gateway.createKey({ idempotency: 'replay' });
  const send = (token: string) =>
    call('POST /p/own/v1/messages', [
      `X-Gateway-Key: ${key}`,
      'Idempotency-Key: shared',
      `Authorization: Bearer ${token}`,
    ]);
  const before = wire.provider.requests.length;
  const replies = [await send('token-of-one'), await send('token-of-one'), await send('token-of-two')];
  expect(replies.map((reply) => reply.header('idempotent-replayed'))).toEqual([undefined, 'true', undefined]);
  expect(wire.provider.requests.length - before).toBe(2);
});

describe('the admin API', () => {
  const order = (more: object) => ({ name: 'other', url: wire.provider.url, auth: 'client', ...more });
  const send = async (method: string, path: string, body: object) => {
    const error: unknown = await wire.gateway.admin(method, path, body).then(
      () => null,
      (reason: unknown) => reason,
    );
    return error === null ? null : (error as Error).message;
  };

  it('rejects a secret that would never be sent', async () => {
    expect(await send('POST', '/providers', order({ secret: 'sk-1' }))).toMatch(/400.*secret.*must be null/);
    await wire.gateway.admin('POST', '/providers', order({ secret: 'sk-1', auth: 'bearer' }));
    expect(await send('PATCH', '/providers/other', { auth: 'client' })).toMatch(/400.*must be null/);
    expect(await send('PATCH', '/providers/other', { auth: 'client', secret: null })).toBeNull();
    expect(await send('PATCH', '/providers/other', { secret: 'sk-1' })).toMatch(/400.*must be null/);
    expect(await wire.gateway.admin('GET', '/providers/other')).toMatchObject({
      auth: 'client',
      secret_state: 'none',
    });
  });

  it('takes a provider that asks for a credential for a good one', async () => {
    wire.provider.script = ({ socket }) => void socket.write(answer('401 Unauthorized', [], '{}'));
    expect(await wire.gateway.admin('POST', '/providers/own/test')).toMatchObject({ ok: true, status: 401 });
    wire.provider.script = ({ socket }) => void socket.write(answer('500 Oops', [], '{}'));
    expect(await wire.gateway.admin('POST', '/providers/own/test')).toMatchObject({ ok: false });
    wire.provider.script = echo;
  });
});
