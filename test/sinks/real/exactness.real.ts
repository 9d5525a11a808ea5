import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { eventually, timePasses } from '../../support/eventually.js';
import { insertCalls } from '../log-rows.js';
import { Installation, print, STREAM, TABLE } from './installation.js';

/** Rows in all, and processes killed while they are sent. */
const ROWS = Number(process.env.SINK_ROWS ?? 1_000_000);
const KILLS = Number(process.env.SINK_KILLS ?? 20);
/** `warehouse` or `stream`: the other one is paused. */
const ONLY = process.env.SINK_ONLY;
/** Rows are inserted for as long at most. */
const BOUND_MS = Number(process.env.SINK_MINUTES ?? 20) * 60_000;
const STEP = 25_000;
/** Rows are inserted as long as a sink is behind by fewer. */
const MAX_WAITING = 500_000;

let installation: Installation;
beforeAll(async () => {
  installation = await Installation.start();
}, 1_800_000);
afterAll(() => installation.remove());

/** Counted in the same way on both sides: IDs by their last two digits, in their order. */
const LOG_IDS = `
  SELECT right(id::text, 2) AS part, count(*)::int AS rows, trim_scale(sum(cost_usd))::text AS cost,
    md5(string_agg(id::text, '' ORDER BY id)) AS ids FROM request_log GROUP BY 1 ORDER BY 1`;
const sinkIds = (from: string) => `
  SELECT substring(toString(id), 35) AS part, toInt32(count()) AS rows, toString(sum(cost_usd)) AS cost,
    lower(hex(MD5(arrayStringConcat(arraySort(groupArray(toString(id))))))) AS ids
  FROM ${from} GROUP BY part ORDER BY part`;
interface Counts {
  rows: string;
  versions: string;
}
const versions = (from: string) =>
  `SELECT toString(count()) AS rows, toString(uniqExact(id, recorded_at)) AS versions FROM ${from}`;
/** What the stream has, copied into a table. */
const STREAMED = 'postern.streamed';
const LATEST_STREAMED = `(SELECT id, argMax(cost_usd, recorded_at) AS cost_usd FROM ${STREAMED} GROUP BY id)`;

it('creates a table and a stream, and says what is wrong before', async () => {
  await installation.addSinks();
  const errors = await eventually(async () => {
    const found = (await installation.sinks()).map(({ last_error }) => last_error);
    return found.every((error) => error !== null) && found;
  });
  expect(errors).toEqual([
    expect.stringContaining('No stream has the subject postern.requests. Create one: nats stream add'),
    expect.stringMatching(
      /There is no table postern\.request_log.*sinks ddl clickhouse --table postern\.request_log/,
    ),
  ]);
  await installation.createStream(1);
  await eventually(async () =>
    (await installation.sinks())[0]!.last_error?.includes('nats stream edit POSTERN --dupe-window 24h'),
  );
  await installation.changeDuplicateWindow(24);
  await installation.createTable();
  await eventually(async () => (await installation.sinks()).every(({ state }) => state === 'current'));
});

it(
  `has every row exactly once after ${KILLS} SIGKILLs of gateway, sinks and Postgres: ${ROWS} rows`,
  async () => {
    for (const { id, name } of await installation.sinks())
      if (ONLY !== undefined && name !== ONLY)
        await installation.admin('PATCH', `/sinks/${id}`, { enabled: false });
    const startedAt = Date.now();
    let inserted = 0;
    let isInserting = true;
    /** Of the sink that has the fewest. */
    const sent = async () => {
      const counted = installation.cluster.query<{ rows: number }>(
        'SELECT min(rows_sent)::int AS rows FROM sink WHERE enabled',
      );
      return (await counted.catch(() => []))[0]?.rows ?? 0;
    };
    const insert = (async () => {
      while (inserted < ROWS && Date.now() < startedAt + BOUND_MS) {
        if (inserted > MAX_WAITING)
          await eventually(async () => (await sent()) > inserted - MAX_WAITING, BOUND_MS);
        try {
          await insertCalls(installation.cluster.url, Math.min(STEP, ROWS - inserted));
          inserted += Math.min(STEP, ROWS - inserted);
          // Rows that are updated are sent again.
          await installation.cluster.query(`
          UPDATE request_log SET cost_usd = cost_usd + 1,
            (recorded_at, repaired_at) = (SELECT t, t FROM date_trunc('milliseconds', clock_timestamp()) t)
          WHERE (started_at, id) IN (SELECT started_at, id FROM request_log WHERE repaired_at IS NULL LIMIT 20)`);
        } catch {
          // Postgres was killed: nothing of this step was committed, or all of it.
          inserted = await eventually(async () => (await counted().catch(() => null)) ?? undefined);
        }
      }
      isInserting = false;
    })();
    const targets = (['gateway', 'clickhouse', 'postgres', 'nats'] as const).filter(
      (target) => target !== { warehouse: 'nats', stream: 'clickhouse' }[ONLY ?? ''],
    );
    let lag = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      // Spread over all rows, while rows are being sent, and at another moment each time.
      const due = Math.max((await sent()) + 1, (ROWS * kill) / KILLS);
      await eventually(async () => (await sent()) >= Math.min(due, isInserting ? ROWS : inserted), BOUND_MS);
      await timePasses(Math.random() * 1_500, 'the kill comes at different moments');
      lag = Math.max(
        lag,
        ...(await installation.sinks().catch(() => [])).map(({ lag_seconds: seconds, state }) =>
          state === 'paused' ? 0 : seconds,
        ),
      );
      const target = targets[kill % targets.length]!;
      await installation.kill(target);
      const seconds = Math.round((Date.now() - startedAt) / 1_000);
      print(`${seconds} s: kill ${kill + 1}, ${target}; ${inserted} rows inserted, ${await sent()} sent`);
    }
    await insert;
    await installation.allSent(BOUND_MS);
    const seconds = (Date.now() - startedAt) / 1_000;

    const log = await installation.cluster.query<{ part: string; rows: number }>(LOG_IDS);
    expect(log.reduce((sum, { rows }) => sum + rows, 0)).toBe(inserted);
    print(
      `${inserted} rows, ${KILLS} kills: all sent after ${Math.round(seconds)} s, ${Math.round(inserted / seconds)} rows/s; largest lag ${Math.round(lag)} s`,
    );
    if (ONLY !== 'stream') {
      expect(await installation.query(sinkIds(`${TABLE} FINAL`))).toEqual(log);
      const [table] = await installation.query<Counts>(versions(TABLE));
      print(`ClickHouse without FINAL: ${table!.rows} rows, ${table!.versions} versions`);
    }
    if (ONLY === 'warehouse') return;
    const messages = await copyStream();
    expect(await installation.query(sinkIds(LATEST_STREAMED))).toEqual(log);
    const [stream] = await installation.query<Counts>(versions(STREAMED));
    // No version of a row came twice.
    expect(stream!.rows).toBe(stream!.versions);
    print(`JetStream: ${messages} messages, ${stream!.rows} rows, ${stream!.versions} versions`);
  },
  BOUND_MS * 2,
);

async function counted(): Promise<number> {
  const text = 'SELECT count(*)::int AS rows FROM request_log';
  return (await installation.cluster.query<{ rows: number }>(text))[0]!.rows;
}

/** Reads the stream to its end into a table that keeps every version. @returns how many messages it has */
async function copyStream(): Promise<number> {
  await installation.command(`
    CREATE TABLE ${STREAMED} (id UUID, recorded_at DateTime64(3, 'UTC'), cost_usd Decimal(18, 9))
    ENGINE = MergeTree ORDER BY id`);
  return installation.onStream(async (connection) => {
    const { state } = await (await jetstreamManager(connection)).streams.info(STREAM);
    const consumer = await jetstream(connection).consumers.get(STREAM);
    let messages = 0;
    let bodies: string[] = [];
    for await (const message of await consumer.consume({ max_messages: 100 })) {
      messages++;
      bodies.push(message.string());
      const isLast = message.seq === state.last_seq;
      if (bodies.length === 100 || isLast) {
        await installation.insert(`INSERT INTO ${STREAMED} FORMAT JSONEachRow`, bodies.join('\n'));
        bodies = [];
      }
      if (isLast) break;
    }
    return messages;
  });
}

it('reads days that the log no longer has from the archive, in the same shape', async () => {
  const from = Date.now() - 3 * 86_400_000;
  await insertCalls(installation.cluster.url, 120, { from, apart: 1 });
  await installation.allSent();
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
    Promise.all(
      filters.map((filter) => installation.admin<List>('GET', `/requests?limit=50&${range}${filter}`)),
    );
  const before = await lists();
  expect(before[0]!.data).toHaveLength(50);
  expect(before.map(({ source }) => source)).toEqual(before.map(() => 'log'));
  const second = await installation.admin<List>(
    'GET',
    `/requests?limit=50&${range}&cursor=${before[0]!.next_cursor}`,
  );
  const day = new Date(from).toISOString().slice(0, 10).replaceAll('-', '');
  await installation.cluster.query(`DROP TABLE request_log_${day}`);
  const after = await lists();
  expect(after.map(({ data }) => data)).toEqual(before.map(({ data }) => data));
  expect(after[0]).toMatchObject({ source: 'archive', next_cursor: before[0]!.next_cursor });
  const next = await installation.admin<List>(
    'GET',
    `/requests?limit=50&${range}&cursor=${after[0]!.next_cursor}`,
  );
  expect(next.data).toEqual(second.data);
  const { attempts: _, ...shown } = await installation.admin<Record<string, unknown>>(
    'GET',
    `/requests/${before[0]!.data[0]!.id}`,
  );
  expect(shown).toEqual(before[0]!.data[0]);
});
