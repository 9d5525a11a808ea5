import { CostRepair } from '../../src/pricing/cost-repair.service.js';
import { LedgerService } from '../../src/limits/ledger/ledger.service.js';
import { WebSocketSessions } from '../../src/proxy/websocket/websocket-sessions.service.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { WsClient, WsProvider } from './ws-provider.js';

type Row = Record<string, unknown> & { id: string; extra_usage: { responses?: object[] } | null };

let provider: WsProvider;
let gateway: TestGateway;
let key: string;
beforeAll(async () => {
  provider = await WsProvider.start();
  provider.script = (socket) => socket.on('message', (data: Buffer) => socket.send(data.toString()));
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
  gateway.gateway.app.get(WebSocketSessions).usageEveryMs = 50;
  for (const [name, catalog] of [
    ['openai', 'openai'],
    ['mine', null],
  ])
    await gateway.admin('POST', '/providers', { name, url: provider.url, secret: null, catalog });
  key = await gateway.createKey({ websockets: true });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

/** The last event of a response of the Responses API. */
function response(model: string, usage: object, tier?: string): string {
  return JSON.stringify({ type: 'response.completed', response: { model, service_tier: tier, usage } });
}

const tokens = (input: number, cached: number, output: number) => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cached },
  output_tokens: output,
});

async function open(path: string, gatewayKey = key): Promise<WsClient> {
  const client = WsClient.connect(gateway.url, path, { authorization: `Bearer ${gatewayKey}` });
  await client.opened;
  return client;
}

/** The row of a connection whose provider sends these messages. */
async function rowOf(path: string, messages: string[]): Promise<Row> {
  const client = await open(path);
  for (const message of messages) client.socket.send(message);
  await eventually(() => client.messages.length === messages.length);
  client.socket.close(1000);
  await client.closed;
  return (await eventually(() => gateway.row(client.requestId))) as unknown as Row;
}

let keys = 0;
async function limited(members: object): Promise<string> {
  const made = await gateway.admin<{ id: string; team_id: string; key: string }>('POST', '/keys', {
    team: 'default',
    name: `charged-${++keys}`,
    websockets: true,
    ...members,
  });
  const ledger = gateway.gateway.app.get(LedgerService);
  await eventually(() => ledger.rulesOf(made.team_id, made.id) !== null);
  return made.key;
}

async function reprice(model?: string): Promise<{ changed: number }> {
  const [from, to] = [-3_600_000, 60_000].map((ms) => new Date(Date.now() + ms).toISOString());
  return gateway.admin('POST', '/prices/reprice', { from, to, ...(model && { model }), dry_run: false });
}

describe('the Realtime API', () => {
  const done = (input: object, output: object) =>
    JSON.stringify({ type: 'response.done', response: { usage: { ...input, ...output } } });
  // gpt-realtime, USD per million: text 4, from the cache 0.40, output 16; audio 32, 0.40 and 64; images 5 and 0.50.
  const cases: [string, string, string][] = [
    [
      'text and audio, most of it from the cache',
      done(
        {
          input_tokens: 1_000,
          input_token_details: {
            text_tokens: 200,
            audio_tokens: 800,
            cached_tokens: 700,
            cached_tokens_details: { text_tokens: 100, audio_tokens: 600 },
          },
        },
        { output_tokens: 0 },
      ),
      // 100 × 4 + 200 × 32 + 700 × 0.40
      '0.007080000',
    ],
    [
      'cached audio beside text that is not cached, and both as output',
      done(
        {
          input_tokens: 1_000,
          input_token_details: {
            text_tokens: 800,
            audio_tokens: 200,
            cached_tokens: 150,
            cached_tokens_details: { text_tokens: 0, audio_tokens: 150 },
          },
        },
        { output_tokens: 200, output_token_details: { text_tokens: 50, audio_tokens: 150 } },
      ),
      // 800 × 4 + 50 × 32 + 150 × 0.40 + 50 × 16 + 150 × 64
      '0.015260000',
    ],
    [
      'images from the cache',
      done(
        {
          input_tokens: 1_000,
          input_token_details: {
            text_tokens: 300,
            audio_tokens: 500,
            image_tokens: 200,
            cached_tokens: 300,
            cached_tokens_details: { text_tokens: 100, audio_tokens: 100, image_tokens: 100 },
          },
        },
        { output_tokens: 0 },
      ),
      // 200 × 4 + 400 × 32 + 100 × 5 + 200 × 0.40 + 100 × 0.50
      '0.014230000',
    ],
  ];

  it.each(cases)('has the price of %s', async (_, message, cost) => {
    const row = await rowOf('/p/openai/v1/realtime?model=gpt-realtime', [message]);
    expect(row).toMatchObject({ cost_usd: cost, model: 'gpt-realtime' });
  });

  it('adds them up exactly', async () => {
    const row = await rowOf(
      '/p/openai/v1/realtime?model=gpt-realtime',
      cases.map(([, message]) => message),
    );
    expect(row).toMatchObject({ cost_usd: '0.036570000', prompt_tokens: 3_000, cached_tokens: 1_150 });
    expect(await reprice('gpt-realtime')).toMatchObject({ changed: 0 });
  });
});

describe('each response of a WebSocket', () => {
  // gpt-5.5, USD per million: 5, from the cache 0.50, output 30; above 271,999 input tokens 10, 1 and 45.
  const short = response('gpt-5.5', tokens(100_000, 90_000, 1_000));

  it('is priced by its own length', async () => {
    const row = await rowOf('/p/openai/v1/responses', [short, short, short]);
    // 3 × (10,000 × 5 + 90,000 × 0.50 + 1,000 × 30)
    expect(row).toMatchObject({ cost_usd: '0.375000000', prompt_tokens: 300_000, model: 'gpt-5.5' });
    const long = response('gpt-5.5', tokens(272_000, 0, 1_000));
    const least = response('gpt-5.5', tokens(271_999, 0, 0));
    // 0.125 + 271,999 × 5 + 272,000 × 10 + 1,000 × 45
    expect(await rowOf('/p/openai/v1/responses', [short, least, long])).toMatchObject({
      cost_usd: '4.249995000',
      extra_usage: { responses: [{ responses: 1 }, { longest: 271_999 }, { longest: 272_000 }] },
    });
    expect(await reprice('gpt-5.5')).toMatchObject({ changed: 0 });
  });

  it('has its own tier: with one that has no price, there is no cost until there is one', async () => {
    const priority = response('tiered', tokens(1_000, 0, 100), 'priority');
    const usual = response('tiered', tokens(2_000, 0, 200));
    const price = { catalog: 'mine', model: 'tiered', input: '1', output: '10' };
    await gateway.admin('POST', '/prices', { ...price, effective_from: '2020-01-01T00:00:00Z' });
    const { id, ...row } = await rowOf('/p/mine/v1/responses', [usual, priority, usual]);
    expect(row).toMatchObject({ cost_usd: null, prompt_tokens: 5_000, extra_usage: { responses: [{}, {}] } });
    expect(row.extra_usage).not.toHaveProperty('service_tier');
    await gateway.admin('POST', '/prices', {
      ...price,
      effective_from: '2021-01-01T00:00:00Z',
      tiers: [{ service_tier: 'priority', input: '2', output: '20' }],
    });
    expect(await reprice('tiered')).toMatchObject({ changed: 1 });
    // 4,000 × 1 + 400 × 10 + 1,000 × 2 + 100 × 20
    expect(await gateway.row(id)).toMatchObject({ cost_usd: '0.012000000' });
  });

  it('has the price of its own model, and late prices too', async () => {
    const path = '/p/mine/v1/responses?model=cheap';
    const { id, ...row } = await rowOf(path, [
      response('dear', tokens(1_000, 0, 0)),
      response('late', tokens(1_000, 0, 0)),
    ]);
    expect(row).toMatchObject({ model: null, cost_usd: null });
    for (const [model, input] of [
      ['cheap', '1'],
      ['dear', '100'],
      ['late', '7'],
    ])
      await gateway.admin('POST', '/prices', {
        catalog: 'mine',
        model,
        input,
        effective_from: '2020-01-01T00:00:00Z',
      });
    expect(await reprice()).toMatchObject({ changed: 1 });
    expect(await gateway.row(id)).toMatchObject({ cost_usd: '0.107000000' });
    const next = await rowOf(path, [
      response('dear', tokens(1_000, 0, 0)),
      response('late', tokens(2_000, 0, 0)),
    ]);
    expect(next).toMatchObject({ model: null, cost_usd: '0.114000000' });
  });

  it('gets a late price by its own length and for each call', async () => {
    const { id, ...row } = await rowOf('/p/mine/v1/responses', [
      response('new', tokens(100_000, 0, 0)),
      response('new', tokens(100_000, 0, 0)),
      response('new', tokens(150_000, 0, 0)),
    ]);
    expect(row).toMatchObject({ cost_usd: null, model: 'new' });
    await gateway.admin('POST', '/prices', {
      catalog: 'mine',
      model: 'new',
      input: '1',
      per_call: '0.5',
      effective_from: '2020-01-01T00:00:00Z',
      tiers: [{ above: 128_000, input: '2' }],
    });
    await eventually(async () => {
      await gateway.gateway.app.get(CostRepair).run(0);
      return (await gateway.row(id)).cost_usd !== null;
    });
    expect(await gateway.row(id)).toMatchObject({ cost_usd: '2.000000000' });
  });

  it('has no cost where a price changes between the lengths that were added up', async () => {
    await gateway.admin('POST', '/prices', {
      catalog: 'mine',
      model: 'odd',
      input: '1',
      tiers: [{ above: 50_000, input: '2' }],
    });
    const lengths = (...inputs: number[]) =>
      rowOf(
        '/p/mine/v1/responses',
        inputs.map((input) => response('odd', tokens(input, 0, 0))),
      );
    expect(await lengths(1_000, 60_000)).toMatchObject({ cost_usd: null });
    expect(await lengths(51_000, 60_000)).toMatchObject({ cost_usd: '0.222000000' });
  });
});

describe('a WebSocket that is closed during a response', () => {
  const begun = JSON.stringify({ type: 'response.created', response: { model: 'cut' } });

  it('costs what ended, and what the open response adds has no upper bound', async () => {
    await gateway.admin('POST', '/prices', { catalog: 'mine', model: 'cut', input: '1', output: '10' });
    // WebSockets are not finished.
    const finishing = await gateway.createKey({ websockets: true, on_disconnect: 'finish' });
    const client = await open('/p/mine/v1/responses', finishing);
    const ended = response('cut', tokens(1_000, 0, 100));
    for (const message of [begun, ended, begun]) client.socket.send(message);
    await eventually(() => client.messages.length === 3);
    const atProvider = provider.sockets.at(-1)!;
    client.socket.terminate();
    await eventually(() => atProvider.readyState === atProvider.CLOSED);
    const row = (await eventually(() => gateway.row(client.requestId))) as unknown as Row;
    const cut = {
      ...{ status: 101, outcome: 'client_aborted', model: 'cut', usage_final: false },
      ...{ cost_usd: '0.002000000', cost_low_usd: '0.000000000', cost_high_usd: null },
    };
    expect(row).toMatchObject(cut);
    expect(await reprice('cut')).toMatchObject({ changed: 0 });
    const { data } = await gateway.admin<{ data: object[] }>('GET', '/usage?group_by=model&model=cut');
    expect(data).toMatchObject([
      { cost_usd: '0.002000000', unknown_calls: 1, unbounded_calls: 1, unknown_low_usd: '0.000000000' },
    ]);
  });

  it('is final between responses', async () => {
    const row = await rowOf('/p/mine/v1/responses', [begun, response('cut', tokens(1_000, 0, 100))]);
    expect(row).toMatchObject({
      ...{ usage_final: true, cost_usd: '0.002000000', cost_low_usd: null, cost_high_usd: null },
    });
  });
});

describe('a budget in USD', () => {
  const price = (model: string) =>
    gateway.admin('POST', '/prices', { catalog: 'mine', model, input: '1', output: '10' });

  it('closes a WebSocket whose responses have a tier without a price, and charges each at least its price', async () => {
    await price('m');
    const gatewayKey = await limited({ budgets: [{ usd: '0.05', period: 'day' }] });
    const client = await open('/p/mine/v1/realtime?model=m', gatewayKey);
    client.socket.send(response('m', tokens(1_000, 0, 0)));
    client.socket.send(response('m', tokens(1_000, 0, 0), 'priority'));
    await eventually(() => client.messages.length === 2);
    client.socket.send(response('m', tokens(60_000, 0, 0)));
    expect(await client.closed).toEqual({ code: 1008, reason: 'the budget is spent' });
    const row = await eventually(() => gateway.row(client.requestId));
    expect(row).toMatchObject({ cost_usd: null, prompt_tokens: 62_000, charge_usd: '0.062000000' });
  });

  it('that admits unknown prices closes a WebSocket of several models, and charges each its own', async () => {
    await price('one');
    await price('two');
    const gatewayKey = await limited({
      budgets: [{ usd: '0.05', period: 'day', unpriced: 'allow' }],
    });
    const client = await open('/p/mine/v1/responses', gatewayKey);
    client.socket.send(response('one', tokens(20_000, 0, 0)));
    client.socket.send(response('unknown', tokens(20_000, 0, 0)));
    client.socket.send(response('two', tokens(40_000, 0, 0)));
    expect(await client.closed).toEqual({ code: 1008, reason: 'the budget is spent' });
    expect(await eventually(() => gateway.row(client.requestId))).toMatchObject({
      model: null,
      cost_usd: null,
      charge_usd: '0.060000000',
    });
  });

  it('closes a WebSocket whose usage cannot be read, and charges what was read', async () => {
    await price('unread');
    const gatewayKey = await limited({ budgets: [{ usd: '5', period: 'day' }] });
    const client = await open('/p/mine/v1/realtime?model=unread', gatewayKey);
    client.socket.send(response('unread', tokens(900_000, 0, 0)));
    await eventually(() => client.messages.length === 1);
    // RSV2 belongs to no extension that was agreed on.
    const raw = provider.sockets.at(-1) as unknown as { _socket: NodeJS.WritableStream };
    raw._socket.write(Buffer.from([0xa1, 0x01, 0x78]));
    await client.closed;
    expect(await eventually(() => gateway.row(client.requestId))).toMatchObject({
      cost_usd: null,
      prompt_tokens: null,
      charge_usd: '0.900000000',
    });
  });
});
