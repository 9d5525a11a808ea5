import type { SinkView } from '../../src/sinks/sinks.schema.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { FakeNats, type Outcome } from './fake-nats.js';
import { insertCalls, logIds } from './log-rows.js';

const ROWS = 1_800;
let gateway: TestGateway;
let server: FakeNats;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());
beforeEach(async () => {
  await gateway.database.query('DELETE FROM sink');
  await gateway.database.query('DELETE FROM request_log');
  server = await new FakeNats().listen();
  await insertCalls(gateway.database.url, ROWS);
});
afterEach(() => server.close());

const create = () =>
  gateway.admin('POST', '/sinks', {
    name: 'stream',
    kind: 'jetstream',
    url: server.url,
    target: 'postern.requests',
  });
const get = () => gateway.admin<SinkView>('GET', '/sinks/stream');
/** Once, for one message of a batch. */
const once = (index: number, outcome: Outcome) => {
  let isDone = false;
  server.outcome = ({ id }) => {
    if (isDone || !id.endsWith(`:${index}`)) return 'stored';
    isDone = true;
    return outcome;
  };
};

it('publishes every row once, at most 500 in a message', async () => {
  await create();
  await eventually(async () => (await get()).rows_sent === ROWS);
  expect(server.ids).toEqual(await logIds(gateway.database));
  const [token] = server.published[0]!.split(':');
  expect(server.published).toEqual(server.published.map((_, index) => `${token}:${index}`));
  expect(server.published.length).toBeGreaterThanOrEqual(ROWS / 500);
  for (const { body } of server.stored) expect(body.split('\n').length).toBeLessThanOrEqual(500);
});

it.each([
  ['was stored, and the stream has the ID', 'unconfirmed', true],
  ['was stored, and the stream has dropped the ID', 'unconfirmed', false],
  ['was lost', 'lost', false],
] as const)(
  'publishes the rest under the same IDs after the connection broke and a message %s',
  async (_, outcome, remembers) => {
    server.remembersIds = remembers;
    once(2, outcome);
    await create();
    await eventually(async () => (await get()).rows_sent === ROWS);
    expect(server.ids).toEqual(await logIds(gateway.database));
    expect(new Set(server.published.map((id) => id.split(':')[0])).size).toBe(1);
    expect(server.published.filter((id) => id.endsWith(':2'))).toHaveLength(outcome === 'lost' ? 2 : 1);
  },
);

it('publishes the same ranges again if rows were updated meanwhile', async () => {
  server.outcome = ({ id }) => (id.endsWith(':1') ? 'lost' : 'stored');
  await create();
  await eventually(() => server.published.filter((id) => id.endsWith(':1')).length >= 2);
  const [updated] = await gateway.database.query<{ id: string }>(
    `UPDATE request_log SET cost_usd = 7, (recorded_at, repaired_at) = (SELECT t, t FROM date_trunc('milliseconds', clock_timestamp()) t)
     WHERE id = (SELECT id FROM request_log ORDER BY recorded_at, id LIMIT 1) RETURNING id`,
  );
  server.outcome = () => 'stored';
  await eventually(async () => (await get()).state === 'current' && server.rows.length > ROWS);
  // The old version was published before the update.
  expect(server.ids).toEqual([...(await logIds(gateway.database)), updated!.id].sort());
});

it('leaves the cursor where it is until the stream has stored all messages of the batch', async () => {
  server.outcome = ({ id }) =>
    id.endsWith(':3') ? { error: { code: 503, description: 'maximum bytes exceeded' } } : 'stored';
  await create();
  await eventually(() => server.published.filter((id) => id.endsWith(':3')).length >= 2);
  expect(await get()).toMatchObject({
    rows_sent: 0,
    state: 'failing',
    last_error: expect.stringContaining('maximum bytes exceeded') as string,
  });
  server.outcome = () => 'stored';
  await eventually(async () => (await get()).rows_sent === ROWS);
  expect(server.ids).toEqual(await logIds(gateway.database));
});
