import pg from 'pg';
import type { SinkSenders } from '../../src/sinks/senders/open-sender.js';
import type { SinkSender } from '../../src/sinks/senders/sink-sender.js';
import { SinkLeader } from '../../src/sinks/sink-leader.js';
import type { SinkSecrets } from '../../src/sinks/sink-secrets.service.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { insertCalls } from './log-rows.js';

/** Each has 100 kB, and was recorded a second after the one before: 335 of them are a batch. */
const CALLS = 1_000;
const SINK = '01890a5d-ac96-774b-bcce-b302099a8057';
const start = Math.floor(Date.now() / 1_000) * 1_000 - 10_800_000;

let database: TestDatabase;
let client: pg.Client;
let ids: string[];
/** Seconds of each query that found rows. */
let spans: number[];
let received: string[][];
beforeAll(async () => {
  database = await createDatabase();
  client = new pg.Client(database.url);
  await client.connect();
  await insertCalls(database.url, CALLS, { from: start, apart: 1_000 });
  await database.query(`UPDATE request_log SET recorded_at = started_at, user_agent = repeat('x', 100000)`);
  ids = (await database.query<{ id: string }>('SELECT id FROM request_log ORDER BY recorded_at')).map(
    ({ id }) => id,
  );
});
afterAll(async () => {
  await client.end();
  await database.drop();
});
beforeEach(async () => {
  spans = [];
  received = [];
  await database.query('DELETE FROM sink');
  await database.query(
    `INSERT INTO sink (id, name, kind, shown_url, sealed, recorded_until, recorded_until_id)
     VALUES ($1, 'fake', 'http', 'http://127.0.0.1:9/', '', $2, gen_random_uuid())`,
    [SINK, new Date(start)],
  );
});

/** Leads until the sink has the last row. */
async function lead(): Promise<void> {
  const done = new AbortController();
  const sender: SinkSender = {
    format: { rows: 20_000, bytes: 2 ** 24, lines: 'objects' },
    send: ({ body }) => {
      const rows = body.split('\n').map((line) => (JSON.parse(line) as { id: string }).id);
      received.push(rows);
      if (rows.includes(ids.at(-1)!)) done.abort();
      return Promise.resolve();
    },
    close: async () => {},
  };
  const watched = {
    query: async (text: string, values?: unknown[]) => {
      const result = await client.query<object>(text, values);
      const [after, , until] = (values ?? []) as Date[];
      if (text.includes('FROM request_log') && result.rows.length > 0 && until instanceof Date)
        spans.push((until.getTime() - after!.getTime()) / 1_000);
      return result;
    },
  } as unknown as pg.PoolClient;
  const senders = { open: () => Promise.resolve(sender) } as unknown as SinkSenders;
  const secrets = { open: () => ({}) } as unknown as SinkSecrets;
  await new SinkLeader(watched, SINK, senders, secrets, { rows: 0, failures: 0 }, done.signal).run();
}

it('reads no more of a long log than a batch of large rows takes', async () => {
  await lead();
  expect(received.flat()).toEqual(ids);
  expect(spans.length).toBeGreaterThan(3);
  expect(Math.max(...spans)).toBeLessThan(1_000);
});

it('sends all rows of a stored message again, also those that a new one would leave out', async () => {
  const end = [new Date(start + 500_000).toISOString(), ids[499]];
  await database.query(
    `UPDATE sink SET batch_token = gen_random_uuid(), batch_until = $1, batch_until_id = $2, batch_ends = $3, batch_at = now()`,
    [...end, JSON.stringify([end])],
  );
  await lead();
  expect(received[0]).toEqual(ids.slice(0, 500));
  expect(received.flat()).toEqual(ids);
});
