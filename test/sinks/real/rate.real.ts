import pg from 'pg';
import { CLICKHOUSE_COLUMNS } from '../../../src/sinks/clickhouse-table.js';
import { FIRST_ID, LAST_ID } from '../../../src/request-log/log-cursor.js';
import { readGroups } from '../../../src/sinks/sink-rows.js';
import type { SinkView } from '../../../src/sinks/sinks.schema.js';
import { eventually, timePasses } from '../../support/eventually.js';
import { insertCalls } from '../log-rows.js';
import { Installation, print, TABLE } from './installation.js';
import { processorSeconds } from './processor-seconds.js';

const ROWS = Math.min(Number(process.env.SINK_ROWS ?? 400_000), 400_000);
/** Least rows/s of one leader, with a lag of 10 s at most; 0: nothing timed is checked. */
const RATE = Number(process.env.SINK_RATE ?? 0);
const BOUND_MS = Number(process.env.SINK_MINUTES ?? 20) * 60_000;
const STEP = 25_000;
const COLUMNS = CLICKHOUSE_COLUMNS.map(([name]) => name).join(', ');

let installation: Installation;
beforeAll(async () => {
  installation = await Installation.start();
  await installation.createTable();
  await installation.createStream(24);
  await installation.addSinks();
  for (const { id } of await installation.sinks()) await pause(id, true);
  for (let i = 0; i < ROWS; i += STEP) await insertCalls(installation.cluster.url, STEP);
}, 1_800_000);
afterAll(() => installation.remove());

const pause = (id: string, isPaused: boolean) =>
  installation.admin('PATCH', `/sinks/${id}`, { enabled: !isPaused });

it(
  'prints how fast the parts are, each alone: rows read as a leader does, and inserted by a bare client',
  async () => {
    await installation.command(`CREATE TABLE postern.alone AS ${TABLE}`);
    const client = new pg.Client(installation.cluster.url);
    await client.connect();
    const { rows: last } = await client.query<{ at: Date }>('SELECT max(recorded_at) AS at FROM request_log');
    const until = { recordedAt: last[0]!.at, id: LAST_ID };
    let after = { recordedAt: new Date(0), id: FIRST_ID };
    const spent = { read: 0, insert: 0 };
    let rows = 0;
    while (rows < Math.min(ROWS, 200_000)) {
      const begun = performance.now();
      const format = { rows: 20_000, bytes: 2 ** 25, lines: 'arrays' } as const;
      const {
        groups: [group],
      } = await readGroups(client, after, until, format);
      const read = performance.now();
      await installation.insert(
        `INSERT INTO postern.alone (${COLUMNS}) FORMAT JSONCompactEachRow`,
        group!.body,
      );
      spent.read += read - begun;
      spent.insert += performance.now() - read;
      after = group!.end;
      rows += group!.rows;
    }
    await client.end();
    const rate = (ms: number) => Math.round((rows / ms) * 1_000);
    print(
      `alone: ${rate(spent.read)} rows/s read from Postgres, ${rate(spent.insert)} rows/s inserted into ClickHouse`,
    );
    const [counted] = await installation.query<{ rows: string }>(
      'SELECT toString(count()) AS rows FROM postern.alone',
    );
    expect(counted!.rows).toBe(String(rows));
  },
  BOUND_MS,
);

it(
  'sends an old log: prints the rate of one leader, and the processor time',
  async () => {
    for (const { id, name } of await installation.sinks()) {
      const server = { warehouse: installation.clickhouse, stream: installation.nats }[name]!.process.pid;
      const processes = [installation.gateway.process.pid, await installation.cluster.pid(), server];
      const usage = () => Promise.all(processes.map((pid) => processorSeconds(pid)));
      const used = await usage();
      const startedAt = performance.now();
      await pause(id, false);
      await eventually(
        async () => (await installation.admin<SinkView>('GET', `/sinks/${id}`)).rows_sent >= ROWS,
        BOUND_MS,
      );
      const rate = Math.round(ROWS / ((performance.now() - startedAt) / 1_000));
      const [node, postgres, sink] = (await usage()).map((now, i) =>
        (((now - used[i]!) / ROWS) * 1e6).toFixed(1),
      );
      await pause(id, true);
      print(
        `${name}: ${rate} rows/s by one leader; processor time per row: gateway ${node} us, Postgres ${postgres} us, sink ${sink} us`,
      );
      expect(rate).toBeGreaterThanOrEqual(RATE);
    }
  },
  BOUND_MS,
);

it(
  'keeps up with 3,000 rows/s: prints the lag',
  async () => {
    for (const { id } of await installation.sinks()) await pause(id, false);
    await installation.allSent();
    let lag = 0;
    for (let second = 0; second < 30; second++) {
      const next = Date.now() + 1_000;
      await insertCalls(installation.cluster.url, 3_000);
      lag = Math.max(lag, ...(await installation.sinks()).map(({ lag_seconds }) => lag_seconds));
      await timePasses(next - Date.now(), 'the rate of the rows');
    }
    await installation.allSent();
    print(`largest lag at 3,000 rows/s: ${lag.toFixed(1)} s`);
    if (RATE > 0) expect(lag).toBeLessThanOrEqual(10);
  },
  BOUND_MS,
);
