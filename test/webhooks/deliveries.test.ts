import { runHere } from '../cli/run-here.js';
import { call, fieldsOf } from '../admin/call.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { hasten, postpone } from './alerts.js';
import { Receiver, verified } from './receiver.js';

interface Delivery {
  event_id: string;
  type: string;
  state: string;
  attempts: number;
  status: number | null;
  error: string | null;
  message: string | null;
  data: Record<string, unknown>;
}
interface Page {
  data: Delivery[];
  next_cursor: string | null;
}
interface Created {
  id: string;
  secret: string;
}

let gateway: TestGateway;
let receiver: Receiver;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());
beforeEach(async () => {
  await gateway.database.query('DELETE FROM webhook');
  await gateway.database.query('DELETE FROM webhook_event');
  receiver = await new Receiver().listen();
});
afterEach(() => receiver.close());

const create = () =>
  gateway.admin<Created>('POST', '/webhooks', { url: receiver.url, events: ['key.expiring'] });
const emit = (data: object) =>
  gateway.database.query(`SELECT webhook_emit('key.expiring', $1)`, [JSON.stringify(data)]);
const deliveries = (id: string, query = '') =>
  gateway.admin<Page>('GET', `/webhooks/${id}/deliveries${query}`);
const inState = (id: string, state: string) =>
  eventually(async () => {
    const { data } = await deliveries(id, `?state=${state}`);
    // One that is under way has neither status nor error yet.
    return data.length > 0 && data.every(({ status, error }) => status !== null || error !== null) && data;
  });
const cli = (...args: string[]) =>
  runHere(args, { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN });

it('lists deliveries with their state, status, reason and data, in pages', async () => {
  const { id } = await create();
  receiver.status = 503;
  await emit({ key: 'rejected' });
  const [rejected] = await inState(id, 'retrying');
  await postpone(gateway.database);
  expect(rejected).toMatchObject({
    type: 'key.expiring',
    attempts: 1,
    status: 503,
    error: 'unexpected_status',
    message: 'The receiver rejected the event: it must respond with a status from 200 to 299.',
    data: { key: 'rejected' },
  });
  receiver.status = 204;
  await emit({ key: 'accepted' });
  const [accepted] = await inState(id, 'delivered');
  expect(accepted).toMatchObject({ status: 204, error: null, message: null, data: { key: 'accepted' } });
  // One that nothing takes yet.
  await gateway.database.query(
    `WITH event AS (INSERT INTO webhook_event (id, type, data) VALUES (gen_random_uuid(), 'key.expiring', '{"key":"new"}') RETURNING id)
     INSERT INTO webhook_delivery (webhook_id, event_id, next_attempt_at) SELECT $1, id, now() + interval '1 hour' FROM event`,
    [id],
  );
  const shown: unknown[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const page: Page = await deliveries(id, `?limit=1${cursor && `&cursor=${cursor}`}`);
    shown.push(...page.data.map(({ data, state }) => [data.key, state]));
    cursor = page.next_cursor;
  }
  expect(shown).toEqual([
    ['new', 'waiting'],
    ['accepted', 'delivered'],
    ['rejected', 'retrying'],
  ]);
});

it('repeats a delivery: the same ID and body, signed anew, and audited', async () => {
  const { id, secret } = await create();
  await emit({ key: 'a' });
  const [first] = await receiver.until(1);
  const [delivered] = await inState(id, 'delivered');
  const again = { event_id: delivered!.event_id };
  expect(await gateway.admin('POST', `/webhooks/${id}/replay`, again)).toMatchObject(again);
  const [, second] = await receiver.until(2);
  expect(second!.body).toBe(first!.body);
  expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id']);
  verified(second!, secret);
  expect(await inState(id, 'delivered')).toMatchObject([{ event_id: delivered!.event_id, attempts: 1 }]);
  expect(await gateway.admin('GET', `/audit?subject_id=${id}&action=replayed`)).toMatchObject({
    data: [{ actor: 'admin-token', after: { event_id: delivered!.event_id } }],
  });
});

it('gives one that had failed for good all its attempts again', async () => {
  const { id } = await create();
  receiver.status = 500;
  await emit({ key: 'a' });
  await inState(id, 'retrying');
  await gateway.database.query('UPDATE webhook_delivery SET attempts = 7');
  await hasten(gateway.database);
  const [failed] = await inState(id, 'failed');
  await gateway.admin('POST', `/webhooks/${id}/replay`, { event_id: failed!.event_id });
  expect(await inState(id, 'retrying')).toMatchObject([{ attempts: 1, status: 500 }]);
});

it('knows only deliveries of this webhook', async () => {
  const { id } = await create();
  await emit({ key: 'a' });
  const [{ event_id }] = (await inState(id, 'delivered')) as [Delivery];
  const { id: other } = await create();
  const path = (webhook: string) => `/webhooks/${webhook}/replay`;
  expect((await deliveries(other)).data).toEqual([]);
  const foreign = await call(gateway, 'POST', path(other), { event_id });
  expect([foreign.status, fieldsOf(foreign)]).toEqual([404, ['event_id']]);
  const nobody = '01890a5d-ac96-774b-bcce-b302099a8057';
  expect((await call(gateway, 'POST', path(nobody), { event_id })).status).toBe(404);
  expect((await call(gateway, 'GET', `/webhooks/${nobody}/deliveries`)).status).toBe(404);
  expect((await call(gateway, 'POST', path(id), { event_id: 'x' })).status).toBe(400);
  const forged = Buffer.from(`["2026-01-01 00:00:00+00'; DROP","${nobody}"]`).toString('base64url');
  expect((await call(gateway, 'GET', `/webhooks/${id}/deliveries?cursor=${forged}`)).status).toBe(400);
  expect((await call(gateway, 'GET', `/webhooks/${id}/deliveries?state=lost`)).status).toBe(400);
});

it('does all of it on the command line, which also changes a webhook', async () => {
  const { id } = await create();
  receiver.status = 410;
  await emit({ key: 'a' });
  const [{ event_id }] = (await inState(id, 'retrying')) as [Delivery];
  await postpone(gateway.database);
  const listed = await cli('webhooks', 'deliveries', id);
  expect(listed.stdout).toMatch(
    /^AT +TYPE +STATE +STATUS +ATTEMPTS +EVENT\n.* key\.expiring +retrying +410 +1 +/,
  );
  expect((await cli('webhooks', 'deliveries', id, '--state', 'delivered')).stdout).toBe(
    'No deliveries found.\n',
  );
  receiver.status = 200;
  expect(await cli('webhooks', 'replay', id, event_id)).toMatchObject({
    code: 0,
    stdout: `Event ${event_id} is sent again.\n`,
  });
  await inState(id, 'delivered');
  expect((await cli('webhooks', 'update', id)).code).toBe(1);
  expect(await cli('webhooks', 'update', id, '--events', 'price.missing, key.expiring')).toMatchObject({
    code: 0,
  });
  expect(await gateway.admin('GET', `/webhooks/${id}`)).toMatchObject({
    events: ['price.missing', 'key.expiring'],
  });
});
