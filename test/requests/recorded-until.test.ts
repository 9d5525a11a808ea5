import pg from 'pg';
import type { Settings } from '../../src/config/settings.js';
import { LogTail } from '../../src/cli/log-tail.js';
import { insertRows } from '../../src/request-log/writer/insert-rows.js';
import { ReaderPool } from '../../src/requests/reader-pool.js';
import { RequestLogExport } from '../../src/requests/request-log.export.js';
import { LAST_ID, RequestLogReader } from '../../src/requests/request-log.reader.js';
import { createDatabase, nextMillisecond, type TestDatabase } from '../support/database.js';
import { createDays, insertRow, logRow } from '../request-log/rows.js';

let database: TestDatabase;
let pool: ReaderPool;
let slow: pg.Client;

beforeEach(async () => {
  database = await createDatabase();
  await createDays(database, Date.now());
  pool = new ReaderPool({ databaseUrl: database.url } as Settings);
  slow = new pg.Client({ connectionString: database.url });
  await slow.connect();
});
afterEach(async () => {
  await slow.end();
  await pool.onApplicationShutdown();
  await database.drop();
});

/** One export as a consumer makes it. @returns the ids it got, and where to go on */
async function exportAfter(recordedAfter: Date): Promise<{ ids: string[]; until: Date }> {
  const opened = await new RequestLogExport(pool).open({ format: 'ndjson', recorded_after: recordedAfter });
  let text = '';
  for await (const piece of opened.chunks()) text += piece;
  await opened.close();
  const lines = text.split('\n').slice(0, -1);
  return { ids: lines.map((line) => (JSON.parse(line) as { id: string }).id), until: opened.until };
}

describe('incremental reading', () => {
  it('misses no row of a transaction that commits late, and gets none twice', async () => {
    const early = await insertRow(database, new Date());
    // Of an earlier millisecond than the slow transaction.
    await nextMillisecond(database);
    await slow.query('BEGIN');
    const first = logRow(Date.now());
    await slow.query(insertRows([first]));
    // Recorded later than the slow one's first row, visible earlier.
    const between = await insertRow(database, new Date());
    const one = await exportAfter(new Date(0));
    expect(one.ids).toEqual([early]);
    const second = logRow(Date.now());
    await slow.query(insertRows([second]));
    const two = await exportAfter(one.until);
    expect(two.ids).toEqual([]);
    await slow.query('COMMIT');
    const three = await exportAfter(two.until);
    expect(three.ids.sort()).toEqual([first.id, between, second.id].sort());
    expect((await exportAfter(three.until)).ids).toEqual([]);
  });

  it('misses no row of a transaction that began before and wrote after', async () => {
    await slow.query('BEGIN');
    await slow.query('SELECT now()');
    const { until } = await exportAfter(new Date(0));
    const row = logRow(Date.now());
    await slow.query(insertRows([row]));
    const between = await exportAfter(until);
    await slow.query('COMMIT');
    expect([...between.ids, ...(await exportAfter(between.until)).ids]).toEqual([row.id]);
  });

  it('gets every row once while several write', async () => {
    const written: string[] = [];
    let isWriting = true;
    const write = async () => {
      const client = new pg.Client({ connectionString: database.url });
      await client.connect();
      for (let i = 0; i < 60; i++) {
        const rows = [logRow(Date.now()), logRow(Date.now() - 60_000)];
        await client.query('BEGIN');
        for (const row of rows) await client.query(insertRows([row]));
        await client.query('COMMIT');
        written.push(...rows.map(({ id }) => id));
      }
      await client.end();
    };
    const writing = Promise.all([write(), write(), write()]).then(() => (isWriting = false));
    const got: string[] = [];
    for (let until = new Date(0), more = true; more;) {
      more = isWriting;
      const part = await exportAfter(until);
      got.push(...part.ids);
      ({ until } = part);
    }
    await writing;
    // What was recorded in the last millisecond comes with the next one.
    const all = await database.query<{ id: string }>('SELECT id FROM request_log');
    expect(new Set(got).size).toBe(got.length);
    expect(all.length).toBe(written.length);
    expect(got.length).toBeGreaterThanOrEqual(all.length - 6);
  });

  it('is not held up by who reads, nor by who writes elsewhere', async () => {
    await slow.query('BEGIN');
    await slow.query("SELECT FROM request_log; INSERT INTO team (id, name) VALUES (gen_random_uuid(), 'x')");
    const id = await insertRow(database, new Date(), { recorded_at: new Date(Date.now() - 1_000) });
    expect((await exportAfter(new Date(0))).ids).toEqual([id]);
  });
});

describe('the tail of the log', () => {
  const follow = async (count = 0) => {
    const reader = new RequestLogReader(pool);
    const tail = new LogTail({
      newest: async (limit) => (await reader.list({ limit })).data,
      recorded: async (after, limit) => {
        const until = (await reader.recordedUntil()).toISOString();
        const place = after && { recorded_at: new Date(after.recorded_at), id: after.id ?? LAST_ID };
        return { data: place ? await reader.recordedAfter({}, place, limit) : [], recorded_until: until };
      },
    });
    const begun = await tail.begin(count);
    const next = async () => (await tail.next()).rows.map(({ id }) => id);
    return { begun: begun.map(({ id }) => id), next };
  };

  it('begins with the last calls and shows each new one once, long and late ones too', async () => {
    await insertRow(database, new Date());
    const last = await insertRow(database, new Date());
    const { begun, next } = await follow(1);
    expect(begun).toEqual([last]);
    expect(await next()).toEqual([]);
    const now = await insertRow(database, new Date());
    expect(await next()).toEqual([now]);
    const long = await insertRow(database, new Date(Date.now() - 3_600_000));
    const drained = await insertRow(database, new Date('2026-01-01T00:00:00Z'));
    expect((await next()).sort()).toEqual([long, drained].sort());
    expect(await next()).toEqual([]);
  });

  it('shows at once what is there, and what is committed late when it is', async () => {
    const { next } = await follow();
    await slow.query('BEGIN');
    const late = logRow(Date.now());
    await slow.query(insertRows([late]));
    const quick = await insertRow(database, new Date());
    expect(await next()).toEqual([quick]);
    expect(await next()).toEqual([]);
    await slow.query('COMMIT');
    expect(await next()).toEqual([late.id]);
    expect(await next()).toEqual([]);
  });

  it('shows a call again whose verdict was mended', async () => {
    const { next } = await follow();
    const row = logRow(Date.now());
    await slow.query(insertRows([{ ...row, outcome: 'interrupted' }]));
    expect(await next()).toEqual([row.id]);
    await nextMillisecond(database);
    await slow.query(insertRows([row]));
    expect(await next()).toEqual([row.id]);
    expect(await next()).toEqual([]);
  });

  it('shows more than a page, of one millisecond too', async () => {
    const { next } = await follow();
    const at = new Date();
    await slow.query('BEGIN');
    for (let i = 0; i < 3; i++) {
      const rows = Array.from({ length: 400 }, () => logRow(at.getTime()));
      await slow.query(insertRows(rows));
    }
    await slow.query('UPDATE request_log SET recorded_at = $1', [new Date(Date.now() + 1_000)]);
    await slow.query('COMMIT');
    const seen = [...(await next()), ...(await next()), ...(await next())];
    expect(seen).toHaveLength(1_200);
    expect(new Set(seen).size).toBe(1_200);
    expect(await next()).toEqual([]);
  });
});
