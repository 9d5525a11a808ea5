import { deferred, type Deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway } from '../support/gateway.js';
import type { GatewayProcess } from '../support/process.js';
import { noticed } from '../support/raw-client.js';
import { chunk, LAST_CHUNK, STREAM_HEAD } from '../support/raw-provider.js';
import { send, Site } from '../support/site.js';

const USAGE =
  'data: {"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":50}}\n\n';

let site: Site;
let goOn: Deferred;
/** Of a key that says `finish` and has a budget in tokens. */
let key: string;
beforeEach(async () => {
  goOn = deferred();
  site = await Site.make({
    script: async ({ body, socket }) => {
      await body;
      socket.write(STREAM_HEAD + chunk('data: {}\n\n').toString());
      await goOn.promise;
      socket.write(`${chunk(USAGE).toString()}${LAST_CHUNK}`);
    },
  });
  const first = await startTestGateway({}, site.database);
  const budgets = [{ tokens: 1_000_000, period: 'total' }];
  await first.admin('POST', '/prices', { catalog: 'default', model: 'm', input: '1', output: '10' });
  key = await first.createKey({ on_disconnect: 'finish', budgets });
  await first.stop();
});
afterEach(() => site.remove());

const BODY = '{"model":"m","stream":true,"max_tokens":1000}';

/** A call whose client has left, so that it is being finished. */
async function finishing(settings: Record<string, string>, body = BODY): Promise<GatewayProcess> {
  const gateway = site.gateway(settings);
  const url = await gateway.ready();
  const client = await send(url, key, [], body);
  await client.head();
  client.destroy();
  await noticed({ port: Number(new URL(url).port) });
  return gateway;
}

const rows = () =>
  site.database.query<Record<string, unknown>>(
    'SELECT outcome, error_code, completion_tokens, charge_tokens::int AS charge FROM request_log',
  );
const spent = async () =>
  (await site.database.query<{ spent: number }>('SELECT spent::int AS spent FROM limit_meter'))[0]?.spent;

async function sigterm({ process }: GatewayProcess): Promise<void> {
  process.signal('SIGTERM');
  await process.until(/stopping: waiting for calls in flight/);
}

it('a shutdown waits for a call that is finished without its client', async () => {
  const gateway = await finishing({ SHUTDOWN_GRACE_MS: '60000' });
  await sigterm(gateway);
  goOn.resolve();
  expect(await gateway.process.ended).toEqual({ code: 0, signal: null });
  expect(await rows()).toEqual([
    { outcome: 'client_aborted', error_code: null, completion_tokens: 50, charge: 57 },
  ]);
  expect(await spent()).toBe(57);
});

it('a shutdown cuts it after SHUTDOWN_GRACE_MS: interrupted, charged what it had reserved', async () => {
  const gateway = await finishing({ SHUTDOWN_GRACE_MS: '50' });
  await sigterm(gateway);
  expect(await gateway.process.ended).toEqual({ code: 0, signal: null });
  const [row, ...others] = await rows();
  expect(others).toEqual([]);
  expect(row).toMatchObject({ outcome: 'interrupted', error_code: null, completion_tokens: null });
  expect(row!.charge).toBeGreaterThan(1_000);
});

it('kill -9: one row, charged what the call had reserved', async () => {
  const gateway = await finishing({});
  gateway.process.signal('SIGKILL');
  await gateway.process.ended;
  expect(await rows()).toEqual([]);
  const next = site.gateway({});
  await next.ready();
  const [row, ...others] = await eventually(async () => {
    const found = await rows();
    return found.length > 0 && found;
  });
  expect(others).toEqual([]);
  expect(row).toMatchObject({ outcome: 'interrupted', completion_tokens: null });
  // The declared output, and the input.
  expect(row!.charge).toBeGreaterThan(1_000);
  expect(row!.charge).toBeLessThan(1_100);
  expect(await spent()).toBe(row!.charge);
  await next.stop();
  expect(await rows()).toHaveLength(1);
});

it.each([
  ['its request and its limit', BODY, ((BODY.length + 10_000) / 1e6 + 1e-9).toFixed(9)],
  ['nothing, if its input is elsewhere', BODY.replace('}', ',"previous_response_id":"a"}'), null],
])('kill -9: the cost of a call is bounded by %s', async (_, body, high) => {
  const gateway = await finishing({}, body);
  gateway.process.signal('SIGKILL');
  await gateway.process.ended;
  const next = site.gateway({});
  await next.ready();
  const read = () =>
    site.database.query<Record<string, unknown>>(
      'SELECT outcome, request_bytes, cost_usd, cost_low_usd, cost_high_usd FROM request_log',
    );
  const found = await eventually(async () => {
    const all = await read();
    return all.length > 0 && all[0]!.cost_low_usd !== null && all;
  });
  expect(found).toEqual([
    {
      ...{ outcome: 'interrupted', request_bytes: null, cost_usd: null },
      ...{ cost_low_usd: '0.000000000', cost_high_usd: high },
    },
  ]);
  await next.stop();
});
