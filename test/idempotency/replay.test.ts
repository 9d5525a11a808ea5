import type { LogRowView } from '../support/gateway.js';
import { never } from '../support/never.js';
import { answer, chunk, LAST_CHUNK } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';
import { essence, once } from './once.js';

let wire: Wire;
let auth: string;
beforeAll(async () => {
  wire = await Wire.start();
  auth = `Authorization: Bearer ${await wire.gateway.createKey({ endpoints: 'all', idempotency: 'replay' })}`;
});
afterAll(() => wire.stop());

const KEY = (value: string) => [auth, `Idempotency-Key: ${value}`];

never(
  'gives a retry the status, content headers and body of the first, byte for byte, and makes no second call',
  async () => {
    const body = Buffer.from([0, 255, 13, 10, 128, ...Buffer.from('{"not json'), 0]);
    wire.provider.script = async (req) => {
      await req.body;
      const headers = [
        'Content-Type: odd/type; x="1"',
        'Content-Encoding: br',
        'X-Request-Id: req_1',
        'X-Other: 1',
      ];
      req.socket.write(answer('201 Made It', headers, body));
    };
    const before = wire.provider.requests.length;
    const first = await once(wire.gateway, KEY('exact'));
    const repeat = await once(wire.gateway, KEY('"exact"'));
    expect(wire.provider.requests.length).toBe(before + 1);
    expect(first.header('idempotent-replayed')).toBeUndefined();
    expect(repeat.body.equals(body)).toBe(true);
    expect(
      repeat.headers.filter(([name]) => !/^(date|x-gateway-request-id|connection|keep-alive)$/i.test(name)),
    ).toEqual([
      ['Content-Type', 'odd/type; x="1"'],
      ['Content-Encoding', 'br'],
      ['X-Request-Id', 'req_1'],
      ['Content-Length', String(body.length)],
      ['idempotent-replayed', 'true'],
    ]);
    expect(repeat.head.split('\r\n')[0]).toBe('HTTP/1.1 201 Made It');
    expect(repeat.header('x-gateway-request-id')).not.toBe(first.header('x-gateway-request-id'));
  },
);

it.each(['302 Found', '307 Temporary Redirect', '201 Created'])(
  'gives the Location of a %s again',
  async (status) => {
    wire.provider.script = async (req) => {
      await req.body;
      req.socket.write(answer(status, ['LOCATION: /v1/elsewhere?a=b#c', 'X-Other: 1'], 'moved'));
    };
    const key = KEY(`location-${status.slice(0, 3)}`);
    const first = await once(wire.gateway, key);
    const repeat = await once(wire.gateway, key);
    expect(repeat.header('idempotent-replayed')).toBe('true');
    expect(repeat.headers).toContainEqual(['LOCATION', '/v1/elsewhere?a=b#c']);
    expect(repeat.header('x-other')).toBeUndefined();
    expect(essence(repeat)).toEqual(essence(first));
  },
);

it('gives a Content-Disposition outside ASCII again byte for byte', async () => {
  const disposition = 'Content-Disposition: attachment; filename="\xe6\x96\x87 \xe9.csv"';
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(
      Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${disposition}\r\n\r\nok`, 'latin1'),
    );
  };
  const first = await once(wire.gateway, KEY('disposition'));
  const repeat = await once(wire.gateway, KEY('disposition'));
  expect(repeat.header('idempotent-replayed')).toBe('true');
  for (const { head } of [first, repeat]) expect(head.split('\r\n')).toContain(disposition);
});

it('gives the events of a stream again, as one body', async () => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(
      'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    for (let i = 0; i < 50; i++) req.socket.write(chunk(`data: {"i":${i}}\n\n`));
    req.socket.write(`${chunk('data: [DONE]\n\n').toString()}${LAST_CHUNK}`);
  };
  const first = await once(wire.gateway, KEY('stream'));
  const repeat = await once(wire.gateway, KEY('stream'));
  expect(first.body.toString()).toContain('"i":49');
  expect(essence(repeat)).toEqual(essence(first));
  expect(repeat.header('idempotent-replayed')).toBe('true');
});

never('leaves a row for each replay, without the tokens of the first', async () => {
  const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
  wire.provider.script = async (req) => {
    await req.body;
    const body = JSON.stringify({ object: 'chat.completion', model: 'm-1', usage });
    req.socket.write(answer('200 OK', ['Content-Type: application/json'], body));
  };
  const first = await once(wire.gateway, KEY('rows'), '{"model":"m-1"}');
  const repeat = await once(wire.gateway, KEY('rows'), '{"model":"m-1"}');
  const rows = await Promise.all(
    [first, repeat].map((reply) => wire.gateway.row(reply.header('x-gateway-request-id')!)),
  );
  const shown = ({
    outcome,
    status,
    model,
    prompt_tokens,
    completion_tokens,
    request_bytes,
    response_bytes,
  }: LogRowView) => ({
    outcome,
    status,
    model,
    prompt_tokens,
    completion_tokens,
    request_bytes: Number(request_bytes),
    response_bytes: Number(response_bytes),
  });
  const common = { status: 200, model: 'm-1', request_bytes: 15, response_bytes: first.body.length };
  expect(rows.map(shown)).toEqual([
    { ...common, outcome: 'completed', prompt_tokens: 3, completion_tokens: 4 },
    { ...common, outcome: 'replayed', prompt_tokens: null, completion_tokens: null },
  ]);
  const sums = await wire.gateway.database.query(
    'SELECT sum(prompt_tokens)::int AS prompt FROM usage_by_model_day WHERE model = $1',
    ['m-1'],
  );
  expect(sums).toEqual([{ prompt: 3 }]);
});

it('passes the header on to the provider as it came', async () => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', []));
  };
  await once(wire.gateway, KEY('"quoted\\"one"'));
  expect(wire.provider.requests.at(-1)!.headers).toContainEqual(['Idempotency-Key', '"quoted\\"one"']);
});

it('keeps no content in Postgres that can be read', async () => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', ['Content-Type: text/x-canary'], 'canary-answer'));
  };
  const first = await once(wire.gateway, KEY('canary-value'), 'canary-request');
  // The response may be stored a moment after the client has it: a retry waits for that.
  const repeat = await once(wire.gateway, KEY('canary-value'), 'canary-request');
  expect(repeat.header('idempotent-replayed')).toBe('true');
  const [row] = await wire.gateway.database.query<{ all: string; answer: Buffer }>(
    'SELECT r::text AS all, answer FROM idempotency_record r WHERE call_id = $1',
    [first.header('x-gateway-request-id')],
  );
  expect(row!.answer.length).toBeGreaterThan(50);
  for (const canary of ['canary-answer', 'canary-request', 'canary-value', 'x-canary']) {
    expect(row!.all).not.toContain(Buffer.from(canary).toString('hex'));
    expect(row!.answer.includes(canary)).toBe(false);
  }
});

it('is charged nothing and has no bounds, whatever the first cost', async () => {
  await wire.gateway.admin('POST', '/prices', { catalog: 'default', model: 'm', input: '1', output: '10' });
  const budgets = [{ usd: '5', period: 'total' }];
  const key = await wire.gateway.createKey({ idempotency: 'replay', budgets });
  const json = JSON.stringify({ model: 'm', usage: { prompt_tokens: 1_000, completion_tokens: 100 } });
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', ['Content-Type: application/json'], json));
  };
  const rowOf = async () => {
    const headers = [`Authorization: Bearer ${key}`, 'Idempotency-Key: charged'];
    const reply = await once(wire.gateway, headers, '{"model":"m","max_tokens":100}');
    return wire.gateway.row(reply.header('x-gateway-request-id')!);
  };
  const bounds = { cost_low_usd: null, cost_high_usd: null };
  expect(await rowOf()).toMatchObject({
    ...{ outcome: 'completed', usage_final: true, cost_usd: '0.002000000', charge_usd: '0.002000000' },
    ...bounds,
  });
  expect(await rowOf()).toMatchObject({
    ...{ outcome: 'replayed', usage_final: null, cost_usd: null, charge_usd: '0.000000000', ...bounds },
  });
  const spent = await wire.gateway.database.query(
    'SELECT spent::text FROM limit_meter m JOIN limit_rule r ON r.id = m.rule_id WHERE spent > 0',
  );
  expect(spent).toEqual([{ spent: '2000000' }]);
});
