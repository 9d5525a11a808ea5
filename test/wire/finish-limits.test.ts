import { MAX_FINISHED_BYTES } from '../../src/proxy/exchange/finishing-calls.service.js';
import { Scrape } from '../observability/scrape.js';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { type LogRowView, startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import {
  chunk,
  LAST_CHUNK,
  RawProvider,
  type ReceivedRequest,
  STREAM_HEAD,
} from '../support/raw-provider.js';

const USAGE =
  'data: {"object":"chat.completion.chunk","usage":{"prompt_tokens":7,"completion_tokens":50}}\n\n';

let provider: RawProvider;
let gateway: TestGateway;
/** How the responses that have begun go on. */
let goOn = deferred();
let rest = async ({ socket }: ReceivedRequest): Promise<void> => {
  await goOn.promise;
  socket.write(`${chunk(USAGE).toString()}${LAST_CHUNK}`);
};

async function start(settings: Record<string, string>): Promise<void> {
  goOn = deferred();
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(STREAM_HEAD + chunk('data: {}\n\n').toString());
    await rest(req);
  });
  gateway = await startTestGateway({ PROVIDER_URL: provider.url, ...settings });
}
afterEach(async () => {
  await gateway.stop();
  await provider.stop();
});

const key = () => gateway.createKey({ on_disconnect: 'finish' });
const metrics = () => Scrape.of(gateway.url);

/** Begins a call and leaves. @returns its row, once it is there */
async function leave(by: string): Promise<() => Promise<LogRowView>> {
  const client = await RawClient.connect(gateway.port);
  client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${by}`], '{"model":"m"}'));
  const id = (await client.head()).headers.find(([name]) => name === 'x-gateway-request-id')![1];
  client.destroy();
  return () => gateway.row(id);
}
const LIMITED = { outcome: 'client_aborted', error_code: 'finish_limit', completion_tokens: null };
const FINISHED = { outcome: 'client_aborted', error_code: null, completion_tokens: 50 };

it('finishes FINISH_MAX_CALLS calls at a time, a quarter of them of one key, and cancels the others', async () => {
  await start({ FINISH_MAX_CALLS: '8' });
  const finished = [];
  const isCounted = (count: number) =>
    eventually(async () => (await metrics()).sum('postern_finishing_calls') === count);
  for (let n = 0; n < 4; n++) {
    const by = await key();
    for (let of = 0; of < 2; of++) {
      finished.push(await leave(by));
      await isCounted(finished.length);
    }
    if (n > 0) continue;
    expect(await (await leave(by))()).toMatchObject(LIMITED);
    await provider.requests.at(-1)!.closed;
    expect((await metrics()).sum('postern_finish_limits_total', { limit: 'key' })).toBe(1);
  }
  // Of a fifth key.
  expect(await (await leave(await key()))()).toMatchObject(LIMITED);
  await provider.requests.at(-1)!.closed;
  expect((await metrics()).sum('postern_finish_limits_total', { limit: 'calls' })).toBe(1);

  goOn.resolve();
  for (const row of finished) expect(await row()).toMatchObject(FINISHED);
  await isCounted(0);
  // Their places are free again.
  goOn = deferred();
  const next = await leave(await key());
  await isCounted(1);
  goOn.resolve();
  expect(await next()).toMatchObject(FINISHED);
});

it('cancels a call that takes longer than FINISH_MAX_SECONDS after its client left', async () => {
  await start({ FINISH_MAX_SECONDS: '1' });
  const row = await leave(await key());
  await provider.requests.at(-1)!.closed;
  expect(await row()).toMatchObject(LIMITED);
  expect((await metrics()).sum('postern_finish_limits_total', { limit: 'seconds' })).toBe(1);
  expect((await metrics()).sum('postern_finishing_calls')).toBe(0);
});

it('cancels a call after 64 MiB without its client', async () => {
  await start({});
  const BLOCK = Buffer.alloc(1024 * 1024, 'x');
  let sent = 0;
  rest = async ({ socket, closed }) => {
    await goOn.promise;
    while (!socket.destroyed && sent < 2 * MAX_FINISHED_BYTES) {
      const drained = new Promise((resolve) => socket.once('drain', resolve));
      sent += BLOCK.length;
      if (!socket.write(chunk(BLOCK))) await Promise.race([drained, closed]);
    }
  };
  const row = await leave(await key());
  await eventually(async () => (await metrics()).sum('postern_finishing_calls') === 1);
  goOn.resolve();
  await provider.requests.at(-1)!.closed;
  expect(sent).toBeGreaterThan(MAX_FINISHED_BYTES);
  expect(sent).toBeLessThan(2 * MAX_FINISHED_BYTES);
  expect(await row()).toMatchObject({ ...LIMITED, response_bytes: String('data: {}\n\n'.length) });
  expect((await metrics()).sum('postern_finish_limits_total', { limit: 'bytes' })).toBe(1);
});

never('finishes none with FINISH_MAX_CALLS=0', async () => {
  await start({ FINISH_MAX_CALLS: '0' });
  const row = await leave(await key());
  await provider.requests.at(-1)!.closed;
  expect(await row()).toMatchObject(LIMITED);
});
