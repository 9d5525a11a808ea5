import { PartitionsService } from '../../src/request-log/partitions.service.js';
import type { SinkView } from '../../src/sinks/sinks.schema.js';
import { SinkHealth } from '../../src/sinks/sink-health.service.js';
import { UsageRollup } from '../../src/usage/usage-rollup.service.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { FakeSink } from './fake-sink.js';
import { insertCalls } from './log-rows.js';

const DAY_MS = 86_400_000;
let gateway: TestGateway;
let sink: FakeSink;
beforeAll(async () => {
  gateway = await startTestGateway({ REQUEST_LOG_RETENTION_DAYS: '1', REQUEST_LOG_MAX_BYTES: '1048576' });
  sink = await new FakeSink().listen();
});
afterAll(async () => {
  await sink.close();
  await gateway.stop();
});

const metrics = async () =>
  (await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })).text();
const ready = async () =>
  (await (await fetch(`${gateway.url}/health/ready`)).json()) as { status: string; reasons: string[] };
const tables = async () =>
  (
    await gateway.database.query<{ name: string }>(
      `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'request_log'::regclass`,
    )
  ).map(({ name }) => name);
const tableOf = (time: number) =>
  `request_log_${new Date(time).toISOString().slice(0, 10).replaceAll('-', '')}`;

it('reports a sink that is behind in readiness, metrics and an alert, and keeps the days that it lacks', async () => {
  const partitions = gateway.gateway.app.get(PartitionsService);
  // Until the sink does, this keeps the days.
  let isReady = false;
  partitions.keepWhile(() => Promise.resolve(!isReady));
  const old = Date.now() - 4 * DAY_MS;
  await insertCalls(gateway.database.url, 10, { from: old, apart: 1 });
  await insertCalls(gateway.database.url, 10, { from: Date.now() - DAY_MS, apart: 1 });
  await gateway.database.query(
    `UPDATE request_log SET recorded_at = date_trunc('milliseconds', now()) - interval '10 minutes'`,
  );
  sink.behave = (_, res) => void res.writeHead(500).end('no');
  await gateway.admin('POST', '/sinks', { name: 'warehouse', kind: 'http', url: sink.url });
  await eventually(async () =>
    (await ready()).reasons.some((reason) => /^sinks that are behind: 1, by up to \d+ [sh]$/.test(reason)),
  );
  expect((await ready()).status).toBe('degraded');
  expect((await fetch(`${gateway.url}/health/ready`)).status).toBe(200);
  const text = await eventually(async () => {
    const found = await metrics();
    return /postern_sink_failures_total\{sink="warehouse"\} [1-9]/.test(found) && found;
  });
  expect(text).toMatch(/postern_sink_lag_seconds\{sink="warehouse"\} \d{3,}/);

  const health = gateway.gateway.app.get(SinkHealth);
  // The error is stored after it is counted, and the gateway looks every 15 s too.
  await eventually(
    async () => (await gateway.admin<SinkView>('GET', '/sinks/warehouse')).state === 'failing',
  );
  await gateway.admin('POST', '/webhooks', { url: 'http://127.0.0.1:9/', events: ['sink.lagging'] });
  await health.check();
  await health.check();
  const events = await gateway.database.query<{ data: Record<string, unknown>; once: string }>(
    `SELECT data, once FROM webhook_event WHERE type = 'sink.lagging'`,
  );
  expect(events.length).toBeGreaterThan(0);
  // Each of an hour of its own, if one begins right now.
  expect(new Set(events.map(({ once }) => once)).size).toBe(events.length);
  expect(events[0]!.data).toMatchObject({
    sink: 'warehouse',
    kind: 'http',
    last_error: expect.stringContaining('500') as string,
  });

  await gateway.gateway.app.get(UsageRollup).run();
  isReady = true;
  // The first one may be under way, the second is whole.
  for (let i = 0; i < 2; i++) {
    partitions.onSchedule();
    await (Reflect.get(partitions, 'round') as Promise<void>);
  }
  expect(await tables()).toContain(tableOf(old));

  sink.behave = (_, res) => void res.writeHead(204).end();
  await eventually(() => sink.ids.length === 20);
  await eventually(async () => {
    partitions.onSchedule();
    return !(await tables()).includes(tableOf(old));
  });
  await eventually(async () => !(await ready()).reasons.some((reason) => reason.includes('sinks')));
  expect(await metrics()).toMatch(/postern_sink_rows_total\{sink="warehouse"\} 20/);
});

it('is degraded when the log has 80 % of REQUEST_LOG_MAX_BYTES', async () => {
  await insertCalls(gateway.database.url, 5_000);
  await gateway.gateway.app.get(SinkHealth).check();
  const { status, reasons } = await ready();
  expect(status).toBe('degraded');
  expect(reasons).toContainEqual(
    expect.stringMatching(/^the request log has \d{2,} % of REQUEST_LOG_MAX_BYTES$/),
  );
});
