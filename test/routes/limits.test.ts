import { type Issued, JSON_TYPE, usageResponse } from '../limits/limited-gateway.js';
import { RawClient, type ReceivedResponse, request } from '../support/raw-client.js';
import { Journal } from '../../src/request-log/journal/journal.js';
import { eventually } from '../support/eventually.js';
import { answer } from '../support/raw-provider.js';
import { replies, Routed } from './routed.js';

const USED = { input: 1_000_000, output: 0 };
const BODY = '{"model":"m","max_tokens":1000000}';

let routed: Routed;
let keys = 0;
beforeAll(async () => {
  routed = await Routed.start();
  const price = { model: 'm', input: '1', output: '1' };
  await routed.gateway.admin('POST', '/prices', { catalog: 'a', ...price });
  await routed.gateway.admin('POST', '/prices', { catalog: 'b', ...price, output: '4' });
});
afterAll(() => routed.gateway.stop());
beforeEach(() =>
  routed.script({ a: replies('429 X'), b: replies('200 OK', JSON_TYPE, usageResponse(USED)) }),
);

function issue(members: object): Promise<Issued> {
  return routed.gateway.admin<Issued>('POST', '/keys', { team: 'default', name: `k-${++keys}`, ...members });
}

async function call(route: string, { key }: Issued, body = BODY): Promise<ReceivedResponse> {
  const client = await RawClient.connect(routed.gateway.port);
  client.send(
    request(`POST /p/${route}/v1/chat/completions`, [`Authorization: Bearer ${key}`, ...JSON_TYPE], body),
  );
  const reply = await client.answer();
  client.destroy();
  return reply;
}

const budget = (usd: string) => ({ budgets: [{ usd, period: 'day', reservation: 'worst' }] });

it('admits a call once, however many attempts it takes', async () => {
  const key = await issue({ limits: { requests_per_minute: 2, concurrent_requests: 1 } });
  const name = await routed.route();
  const statuses = [];
  for (let i = 0; i < 3; i++) statuses.push((await call(name, key)).status);
  expect(statuses).toEqual([200, 200, 429]);
});

it('counts a call whose first attempt was made although no further one could begin', async () => {
  const key = await issue({ limits: { requests_per_minute: 1, concurrent_requests: 1 } });
  const name = await routed.route();
  const journal = routed.gateway.gateway.app.get(Journal);
  routed.script({
    a: async (req) => {
      await req.body;
      jest.spyOn(journal, 'accepting', 'get').mockReturnValue(false);
      req.socket.write(answer('429 X', [], ''));
    },
  });
  const first = await call(name, key);
  jest.restoreAllMocks();
  expect([first.status, first.header('x-gateway-error')]).toEqual([503, 'journal_unavailable']);
  expect([(await call(name, key)).status, routed.counts]).toEqual([429, [1, 0, 0]]);
});

it('reserves what the dearest target costs, for each attempt that may be billed', async () => {
  const cheap = await routed.route({ targets: [{ provider: 'a' }, { provider: 'a' }] });
  const dear = await routed.route();
  const failing = await routed.route({ retry_on: ['failed'] });
  const status = async (route: string, usd: string) => (await call(route, await issue(budget(usd)))).status;
  // An attempt at a costs 1 USD at most, one at b 4 USD, two that may be billed 8 USD; and some for the input.
  expect([await status(cheap, '1.5'), await status(cheap, '0.5')]).toEqual([429, 402]);
  expect([await status(dear, '4.5'), await status(dear, '3.5')]).toEqual([200, 402]);
  expect([await status(failing, '8.5'), await status(failing, '7.5')]).toEqual([429, 402]);
});

it('takes no target that has no price for the service tier of the request', async () => {
  const tiers = [{ service_tier: 'priority', output: '2' }];
  const price = { catalog: 'a', model: 'tiered', input: '1', output: '1', tiers };
  await routed.gateway.admin('POST', '/prices', price);
  await routed.gateway.admin('POST', '/prices', { ...price, catalog: 'b', tiers: undefined });
  const body = '{"model":"tiered","max_tokens":1,"service_tier":"priority"}';
  const name = await routed.route();
  expect([(await call(name, await issue(budget('1')), body)).status, routed.counts]).toEqual([
    429,
    [1, 0, 0],
  ]);
  const other = await routed.route({ targets: [{ provider: 'b' }] });
  const reply = await call(other, await issue(budget('1')), body);
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([403, 'model_not_priced']);
});

it('rejects models without a price once a budget that allows them is spent', async () => {
  const budgets = [{ usd: '0', period: 'total', unpriced: 'allow' }];
  const body = '{"model":"unpriced","max_tokens":1}';
  expect((await call(await routed.route(), await issue({ budgets }), body)).status).toBe(402);
});

it('charges each attempt what it cost, and ends the reservation with the last row', async () => {
  const key = await issue(budget('100'));
  const reply = await call(await routed.route(), key);
  expect(reply.status).toBe(200);
  const rows = await routed.rows(reply);
  expect(rows.map(({ charge_usd, cost_usd }) => [charge_usd, cost_usd])).toEqual([
    ['0.000000000', null],
    ['1.000000000', '1.000000000'],
  ]);
  await eventually(async () => {
    const { data } = await routed.gateway.admin<{ data: { used: string }[] }>('GET', `/limits?key=${key.id}`);
    return Number(data[0]!.used) === 1;
  });
});

it('does not use a target without a price for a key with a budget', async () => {
  const key = await issue(budget('100'));
  const targets = [{ provider: 'c' }, { provider: 'b' }];
  routed.script({ b: replies('200 OK', JSON_TYPE, usageResponse(USED)) });
  expect((await call(await routed.route({ targets }), key)).status).toBe(200);
  expect(routed.counts).toEqual([0, 1, 0]);
  const reply = await call(await routed.route({ targets: [{ provider: 'c' }] }), key);
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([403, 'model_not_priced']);
});
