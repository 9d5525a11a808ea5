import { createClient } from '@clickhouse/client';
import { jetstreamManager, jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { clickhouseDdl } from '../../../src/sinks/clickhouse-table.js';
import type { SinkView } from '../../../src/sinks/sinks.schema.js';
import { eventually } from '../../support/eventually.js';
import { LogCluster } from '../../support/log-cluster.js';
import type { GatewayProcess } from '../../support/process.js';
import { Workplace } from '../../support/workplace.js';
import { insertCalls } from '../log-rows.js';
import { installServers, SinkServer } from './servers.js';

/** Rows in all, and processes killed while they are sent. */
const ROWS = Number(process.env.SINK_ROWS ?? 1_000_000);
const KILLS = Number(process.env.SINK_KILLS ?? 20);
const BOUND_MS = Number(process.env.SINK_MINUTES ?? 20) * 60_000;
const STEP = 25_000;
const ADMIN_TOKEN = 'test-admin-token-0123456789';
const SUBJECT = 'postern.requests';
const TABLE = 'postern.request_log';

let cluster: LogCluster;
let workplace: Workplace;
let clickhouse: SinkServer;
let nats: SinkServer;
let gateway: GatewayProcess;
let url = '';

beforeAll(async () => {
  const { nats: program, python } = installServers();
  cluster = await LogCluster.start();
  workplace = await Workplace.make();
  [clickhouse, nats] = await Promise.all([SinkServer.clickhouse(python), SinkServer.nats(program)]);
  await startGateway();
}, 1_800_000);
afterAll(async () => {
  await workplace.remove();
  await clickhouse.remove();
  await nats.remove();
  await cluster.remove();
});

async function startGateway(): Promise<void> {
  gateway = workplace.gateway({
    DATABASE_URL: cluster.url,
    ADMIN_TOKEN,
    CONSOLE: 'off',
    REQUEST_LOG_ARCHIVE: 'warehouse',
  });
  url = await gateway.ready();
  await eventually(async () => (await fetch(`${url}/health/ready`).catch(() => null))?.status === 200);
}

async function admin<T>(method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`${url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

const sinks = async () => (await admin<{ data: SinkView[] }>('GET', '/sinks')).data;

async function query<T>(text: string): Promise<T[]> {
  const client = createClient({ url: `http://127.0.0.1:${clickhouse.port}`, request_timeout: 300_000 });
  try {
    return (await (await client.query({ query: text, format: 'JSON' })).json<T>()).data;
  } finally {
    await client.close();
  }
}

async function onStream<T>(
  work: (connection: Awaited<ReturnType<typeof connect>>) => Promise<T>,
): Promise<T> {
  const connection = await connect({ servers: `127.0.0.1:${nats.port}` });
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

/** Counted in the same way on both sides: IDs by their last two digits, in their order. */
const LOG_IDS = `
  SELECT right(id::text, 2) AS part, count(*)::int AS rows, trim_scale(sum(cost_usd))::text AS cost,
    md5(string_agg(id::text, '' ORDER BY id)) AS ids FROM request_log GROUP BY 1 ORDER BY 1`;
const SINK_IDS = `
  SELECT substring(toString(id), 35) AS part, toInt32(count()) AS rows, toString(sum(cost_usd)) AS cost,
    lower(hex(MD5(arrayStringConcat(arraySort(groupArray(toString(id))))))) AS ids
  FROM ${TABLE} FINAL GROUP BY part ORDER BY part`;

it('creates a table and a stream, and says what is wrong before', async () => {
  const common = { url: `http://127.0.0.1:${clickhouse.port}`, kind: 'clickhouse', target: TABLE };
  await admin('POST', '/sinks', { name: 'warehouse', ...common });
  await admin('POST', '/sinks', {
    ...{ name: 'stream', kind: 'jetstream', url: `nats://127.0.0.1:${nats.port}`, target: SUBJECT },
  });
  const errors = await eventually(async () => {
    const found = (await sinks()).map(({ last_error }) => last_error);
    return found.every((error) => error !== null) && found;
  });
  expect(errors).toEqual([
    expect.stringContaining('No stream has the subject postern.requests. Create one: nats stream add'),
    expect.stringMatching(
      /There is no table postern\.request_log.*sinks ddl clickhouse --table postern\.request_log/,
    ),
  ]);
  await onStream(async (connection) => {
    const manager = await jetstreamManager(connection);
    await manager.streams.add({
      name: 'POSTERN',
      subjects: [SUBJECT],
      duplicate_window: 120 * 1_000_000_000,
    });
    await eventually(async () =>
      (await sinks())[0]!.last_error?.includes('nats stream edit POSTERN --dupe-window 24h'),
    );
    await manager.streams.update('POSTERN', { duplicate_window: 24 * 3_600 * 1_000_000_000 });
  });
  const client = createClient({ url: common.url });
  await client.command({ query: 'CREATE DATABASE postern' });
  for (const statement of clickhouseDdl({ table: TABLE }).split(';').slice(0, -1))
    await client.command({ query: statement });
  await client.close();
  await eventually(async () => (await sinks()).every(({ state }) => state === 'current'));
});

it(
  `has every row exactly once after ${KILLS} SIGKILLs of gateway, sinks and Postgres: ${ROWS} rows`,
  async () => {
    const startedAt = Date.now();
    let inserted = 0;
    const insert = (async () => {
      while (inserted < ROWS) {
        try {
          await insertCalls(cluster.url, Math.min(STEP, ROWS - inserted));
          inserted += Math.min(STEP, ROWS - inserted);
          // Rows that are updated are sent again.
          await cluster.query(`
          UPDATE request_log SET cost_usd = cost_usd + 1,
            (recorded_at, repaired_at) = (SELECT t, t FROM date_trunc('milliseconds', clock_timestamp()) t)
          WHERE id IN (SELECT id FROM request_log WHERE repaired_at IS NULL LIMIT 20)`);
        } catch {
          // Postgres was killed: nothing of this step was committed, or all of it.
          inserted = await eventually(async () => (await counted().catch(() => null)) ?? undefined);
        }
      }
    })();
    const targets = ['gateway', 'clickhouse', 'nats', 'postgres'] as const;
    const sent = () =>
      cluster.query<{ sum: number }>('SELECT sum(rows_sent)::int AS sum FROM sink').catch(() => []);
    for (let kill = 0; kill < KILLS; kill++) {
      const before = (await sent())[0]?.sum ?? 0;
      // While rows are being sent, and at another moment each time.
      await eventually(async () => ((await sent())[0]?.sum ?? 0) > before || inserted === ROWS, BOUND_MS);
      await new Promise((done) => setTimeout(done, Math.random() * 1_500));
      const target = targets[kill % targets.length]!;
      if (target === 'gateway') {
        await gateway.process.kill();
        await startGateway();
      } else if (target === 'clickhouse') await clickhouse.killed();
      else if (target === 'nats') await nats.killed();
      else {
        await cluster.signal('SIGKILL');
        await cluster.begin();
        await eventually(async () => (await fetch(`${url}/health/ready`).catch(() => null))?.status === 200);
      }
    }
    await insert;
    await eventually(
      async () => (await sinks().catch(() => [])).filter(({ state }) => state === 'current').length === 2,
      BOUND_MS,
    );
    // The cursor is past everything that was recorded by now.
    const [{ now }] = (await cluster.query<{ now: Date }>('SELECT clock_timestamp() AS now')) as [
      { now: Date },
    ];
    await eventually(
      async () => (await sinks()).every((sink) => new Date(sink.recorded_until) > now),
      BOUND_MS,
    );

    const log = await cluster.query<{ part: string; rows: number }>(LOG_IDS);
    expect(log.reduce((sum, { rows }) => sum + rows, 0)).toBe(inserted);
    expect(await query(SINK_IDS)).toEqual(log);
    const [raw] = await query<{ rows: string; distinct_rows: string }>(
      `SELECT toString(count()) AS rows, toString(uniqExact(id, recorded_at)) AS distinct_rows FROM ${TABLE}`,
    );
    const stream = await streamed();
    const [totals] = await cluster.query<{ rows: number; cost: string }>(
      'SELECT count(*)::int AS rows, sum(cost_usd)::text AS cost FROM request_log',
    );
    expect(stream.twice).toBe(0);
    expect(stream).toMatchObject({ rows: totals!.rows, cost: totals!.cost });
    process.stdout.write(
      `\n${inserted} rows, ${KILLS} kills, ${Math.round((Date.now() - startedAt) / 1_000)} s; ClickHouse without FINAL: ` +
        `${raw!.rows} rows, ${raw!.distinct_rows} distinct; JetStream: ${stream.messages} messages, ${stream.versions} versions of rows\n`,
    );
  },
  BOUND_MS * 2,
);

async function counted(): Promise<number> {
  return (await cluster.query<{ rows: number }>('SELECT count(*)::int AS rows FROM request_log'))[0]!.rows;
}

/** Reads the stream to its end, and keeps the last version of each row. */
function streamed() {
  return onStream(async (connection) => {
    const manager = await jetstreamManager(connection);
    const { state } = await manager.streams.info('POSTERN');
    const consumer = await jetstream(connection).consumers.get('POSTERN');
    const latest = new Map<string, [recordedAt: string, cost: bigint]>();
    let [twice, versions, messages] = [0, 0, 0];
    for await (const message of await consumer.consume({ max_messages: 100 })) {
      messages++;
      for (const line of message.string().split('\n')) {
        const { id, recorded_at: at, cost_usd: cost } = JSON.parse(line) as Record<string, string>;
        const known = latest.get(id!);
        versions++;
        if (known?.[0] === at) twice++;
        if (known === undefined || known[0] < at!) latest.set(id!, [at!, BigInt(cost!.replace('.', ''))]);
      }
      if (message.seq === state.last_seq) break;
    }
    let total = 0n;
    for (const [, cost] of latest.values()) total += cost;
    const digits = String(total).padStart(10, '0');
    return {
      rows: latest.size,
      cost: `${digits.slice(0, -9)}.${digits.slice(-9)}`,
      twice,
      versions,
      messages,
    };
  });
}

it(
  'sends an old log at 20,000 rows/s, and keeps up with 3,000 rows/s',
  async () => {
    const rows = Math.min(ROWS, 400_000);
    for (const { id } of await sinks()) await admin('PATCH', `/sinks/${id}`, { enabled: false });
    for (let i = 0; i < rows; i += STEP) await insertCalls(cluster.url, STEP);
    const rates: Record<string, number> = {};
    for (const { id, name, rows_sent: before } of await sinks()) {
      const startedAt = performance.now();
      await admin('PATCH', `/sinks/${id}`, { enabled: true });
      await eventually(
        async () => (await admin<SinkView>('GET', `/sinks/${id}`)).rows_sent - before >= rows,
        BOUND_MS,
      );
      rates[name] = Math.round(rows / ((performance.now() - startedAt) / 1_000));
      await admin('PATCH', `/sinks/${id}`, { enabled: false });
    }
    for (const { id } of await sinks()) await admin('PATCH', `/sinks/${id}`, { enabled: true });
    await eventually(async () => (await sinks()).every(({ state }) => state === 'current'));
    let lag = 0;
    for (let second = 0; second < 30; second++) {
      const next = Date.now() + 1_000;
      await insertCalls(cluster.url, 3_000);
      lag = Math.max(lag, ...(await sinks()).map(({ lag_seconds }) => lag_seconds));
      await new Promise((done) => setTimeout(done, next - Date.now()));
    }
    process.stdout.write(
      `\nrows/s of one leader: ${JSON.stringify(rates)}; largest lag at 3,000 rows/s: ${lag} s\n`,
    );
    expect(Math.min(...Object.values(rates))).toBeGreaterThan(Number(process.env.SINK_RATE ?? 0));
    expect(lag).toBeLessThan(60);
  },
  BOUND_MS,
);

it('answers for days that the log no longer has from the archive, in the same shape', async () => {
  const from = Date.now() - 3 * 86_400_000;
  await insertCalls(cluster.url, 120, { from, apart: 1 });
  await eventually(async () => (await sinks()).every(({ state }) => state === 'current'));
  const [{ now }] = (await cluster.query<{ now: Date }>('SELECT clock_timestamp() AS now')) as [
    { now: Date },
  ];
  await eventually(async () => (await sinks()).every((sink) => new Date(sink.recorded_until) > now));
  interface List {
    data: { id: string }[];
    next_cursor: string | null;
    source: string;
  }
  const range = `from=${new Date(from - 60_000).toISOString()}&to=${new Date(from + 60_000).toISOString()}`;
  const filters = [
    '',
    '&model=gpt-4o',
    '&status=2xx',
    '&failed=true',
    '&min_duration_ms=150',
    '&outcome=completed',
  ];
  const lists = () =>
    Promise.all(filters.map((filter) => admin<List>('GET', `/requests?limit=50&${range}${filter}`)));
  const before = await lists();
  expect(before[0]!.data).toHaveLength(50);
  expect(before.map(({ source }) => source)).toEqual(before.map(() => 'log'));
  const second = await admin<List>('GET', `/requests?limit=50&${range}&cursor=${before[0]!.next_cursor}`);
  const day = new Date(from).toISOString().slice(0, 10).replaceAll('-', '');
  await cluster.query(`DROP TABLE request_log_${day}`);
  const after = await lists();
  expect(after.map(({ data }) => data)).toEqual(before.map(({ data }) => data));
  expect(after[0]).toMatchObject({ source: 'archive', next_cursor: before[0]!.next_cursor });
  const next = await admin<List>('GET', `/requests?limit=50&${range}&cursor=${after[0]!.next_cursor}`);
  expect(next.data).toEqual(second.data);
  const { attempts: _, ...shown } = await admin<Record<string, unknown>>(
    'GET',
    `/requests/${before[0]!.data[0]!.id}`,
  );
  expect(shown).toEqual(before[0]!.data[0]);
});
