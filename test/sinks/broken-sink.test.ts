import type { SinkView } from '../../src/sinks/sinks.schema.js';
import { startTestGateway, ADMIN_TOKEN, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { type Behaviour, error, FakeClickHouse } from './fake-clickhouse.js';
import { insertCalls } from './log-rows.js';

const CALLS = 5;

let provider: RawProvider;
let gateway: TestGateway;
let server: FakeClickHouse;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'ok'));
  });
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});
beforeEach(async () => {
  await gateway.database.query('DELETE FROM sink');
  await gateway.database.query('DELETE FROM request_log');
  server = await new FakeClickHouse().listen();
});
afterEach(() => server.close());

const view = async () => (await gateway.admin<{ data: SinkView[] }>('GET', '/sinks')).data[0]!;
const ready = async () => {
  const response = await fetch(`${gateway.url}/health/ready`);
  return { code: response.status, ...((await response.json()) as { status: string; reasons: string[] }) };
};
const metric = async (name: string) => {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const text = await (await fetch(`${gateway.url}/metrics`, { headers })).text();
  return Number(new RegExp(`^${name}\\{sink="broken"\\} (\\S+)$`, 'm').exec(text)?.[1] ?? 0);
};

const silent: Behaviour = () => {};
const garbage: Behaviour = (_, res) => void res.writeHead(200).end('<html>It works!</html>');

it.each([
  ['is down', null, /^Connection refused: .*Start the server/],
  ['is full', error(243, 'NOT_ENOUGH_SPACE', 'Cannot reserve space'), /^ClickHouse: NOT_ENOUGH_SPACE: /],
  ['responds with garbage', garbage, /^The server does not respond like ClickHouse\. Check the URL/],
  ['never responds', silent, null],
])('touches no call when a sink %s, and says so', async (_, behave, message) => {
  await insertCalls(gateway.database.url, 5, { from: Date.now() - 600_000 });
  await gateway.database.query(
    `UPDATE request_log SET recorded_at = date_trunc('milliseconds', now()) - interval '10 minutes'`,
  );
  const [failures, rows] = await Promise.all(
    ['postern_sink_failures_total', 'postern_sink_rows_total'].map((name) => metric(name)),
  );
  if (behave === null) await server.close();
  else server.behave = behave;
  await gateway.admin('POST', '/sinks', {
    name: 'broken',
    kind: 'clickhouse',
    url: server.url,
    target: 'postern.request_log',
  });
  if (message === null) await eventually(() => server.inserts.length === 1);
  else await eventually(async () => (await metric('postern_sink_failures_total')) > failures!);

  for (let call = 0; call < CALLS; call++) {
    const headers = { authorization: `Bearer ${gateway.key}` };
    const response = await fetch(`${gateway.url}/v1/models`, { headers });
    expect([response.status, await response.text()]).toEqual([200, 'ok']);
  }
  await eventually(async () => (await gateway.rowCount()) === 5 + CALLS);

  const { code, status, reasons } = await eventually(async () => {
    const found = await ready();
    return found.status === 'degraded' && found;
  });
  expect({ code, status, reasons }).toEqual({
    code: 200,
    status: 'degraded',
    reasons: expect.arrayContaining([
      expect.stringMatching(/^sinks that are behind: 1, by up to \d{3} s$/),
    ]) as string[],
  });
  expect(await metric('postern_sink_lag_seconds')).toBeGreaterThan(590);
  const shown = await view();
  expect(shown.lag_seconds).toBeGreaterThan(590);
  if (message === null) expect(shown).toMatchObject({ state: 'sending', last_error: null });
  else {
    expect(shown.state).toBe('failing');
    expect(shown.last_error).toMatch(message);
  }
  expect(server.stored).toEqual([]);

  server.accept();
  await server.close();
  await server.listen();
  await eventually(() => server.stored.length === 5 + CALLS);
  await eventually(
    async () => !(await ready()).reasons.some((reason) => reason.startsWith('sinks that are behind')),
  );
  await eventually(async () => (await metric('postern_sink_rows_total')) - rows! === 5 + CALLS);
  await eventually(async () => (await view()).state === 'current');
});
