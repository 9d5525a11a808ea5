import type { Settings } from '../../src/config/settings.js';
import { ReaderPool } from '../../src/requests/reader-pool.js';
import { statusesOf } from '../../src/requests/request-query.js';
import { RequestLogReader } from '../../src/requests/request-log.reader.js';
import { SHOWN_COLUMNS } from '../../src/requests/request-view.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { insertRow, KEY, TEAM } from '../request-log/rows.js';

let database: TestDatabase;
let pool: ReaderPool;
let reader: RequestLogReader;
const at = (second: number) => new Date(Date.UTC(2031, 0, 1, 0, 0, second));
const OTHER = '01890a5d-ac96-774b-bcce-b302099a8059';

beforeEach(async () => {
  database = await createDatabase();
  pool = new ReaderPool({ databaseUrl: database.url } as Settings);
  reader = new RequestLogReader(pool);
});
afterEach(async () => {
  await pool.onApplicationShutdown();
  await database.drop();
});

async function ids(filter: Partial<Parameters<RequestLogReader['list']>[0]> = {}): Promise<string[]> {
  return (await reader.list({ limit: 50, ...filter })).data.map(({ id }) => id);
}

describe('the request log reader', () => {
  it('shows every column under its own name, bytes as numbers, times in UTC', async () => {
    const id = await insertRow(database, at(1), {
      recorded_at: new Date('2031-01-01T00:00:02.5Z'),
      request_bytes: '5000000000',
      ttfb_ms: 12.25,
      duration_ms: 80.5,
      prompt_tokens: 7,
      completion_tokens: 9,
      cached_tokens: 3,
      reasoning_tokens: 2,
      provider_request_id: 'req_1',
      idempotency_key: 'once',
      sdk_retry_count: 1,
      client_ip: '2001:db8::1',
      user_agent: 'OpenAI/JS',
      cache_write_tokens: 2,
      extra_usage: '{"web_searches":1,"service_tier":"batch"}',
    });
    const row = {
      // Every column that is not set above.
      ...Object.fromEntries(SHOWN_COLUMNS.map((name) => [name, null])),
      id,
      started_at: '2031-01-01T00:00:01.000Z',
      recorded_at: '2031-01-01T00:00:02.500Z',
      team_id: TEAM,
      key_id: KEY,
      provider: 'default',
      method: 'POST',
      path: '/v1/chat/completions',
      model: 'gpt-4o',
      streamed: false,
      status: 200,
      outcome: 'completed',
      error_code: null,
      request_bytes: 5_000_000_000,
      response_bytes: 20,
      ttfb_ms: 12.25,
      duration_ms: 80.5,
      prompt_tokens: 7,
      completion_tokens: 9,
      cached_tokens: 3,
      reasoning_tokens: 2,
      provider_request_id: 'req_1',
      idempotency_key: 'once',
      sdk_retry_count: 1,
      client_ip: '2001:db8::1',
      user_agent: 'OpenAI/JS',
      cache_write_tokens: 2,
      extra_usage: { web_searches: 1, service_tier: 'batch' },
    };
    expect(await reader.list({ limit: 1 })).toEqual({ data: [row], next_cursor: null, source: 'log' });
    expect(await reader.get(id)).toEqual(row);
    expect(await reader.get(id.toUpperCase())).toEqual(row);
  });

  it('shows null, not 0, where a dead process left no count', async () => {
    const id = await insertRow(database, at(1), { request_bytes: null, response_bytes: null });
    expect(await reader.get(id)).toMatchObject({ request_bytes: null, response_bytes: null });
  });

  it('shows every column there is, and the names of team and key', async () => {
    const id = await insertRow(database, at(1));
    const columns = await database.query<{ name: string }>(
      `SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'request_log'`,
    );
    expect(Object.keys(await reader.get(id)).sort()).toEqual(
      ['team', 'key', ...columns.map(({ name }) => name)].sort(),
    );
  });

  it('pages through calls of one millisecond and late rows, each once', async () => {
    const known: string[] = [];
    for (let i = 0; i < 7; i++) known.push(await insertRow(database, at(i < 5 ? 1 : 2)));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await reader.list({ limit: 2, cursor });
      seen.push(...page.data.map(({ id }) => id));
      cursor = page.next_cursor ?? undefined;
      // Newer ones, and one of a long call that began before everything.
      await insertRow(database, at(9));
    } while (cursor !== undefined);
    expect(seen).toEqual(known.sort().reverse());
  });

  it('filters by each column', async () => {
    const plain = await insertRow(database, at(1));
    const rows: Record<string, string> = {};
    const odd: Record<string, Record<string, unknown>> = {
      team: { team_id: OTHER },
      key: { key_id: OTHER },
      provider: { provider: 'azure' },
      model: { model: 'claude' },
      outcome: { outcome: 'truncated' },
      cached: { outcome: 'cached' },
      user: { end_user: 'user-7' },
      session: { session_id: 'session-12' },
      subject: { subject: 'repo:acme/api' },
      unfinished: { duration_ms: null },
      limited: { status: 429 },
      failed: { status: 503 },
      worst: { status: 599 },
      strange: { status: 999 },
      unanswered: { status: null },
      slow: { duration_ms: 5_000 },
    };
    for (const [name, columns] of Object.entries(odd)) rows[name] = await insertRow(database, at(2), columns);
    expect(await ids({ team: OTHER })).toEqual([rows.team]);
    expect(await ids({ key: OTHER })).toEqual([rows.key]);
    expect(await ids({ provider: 'azure' })).toEqual([rows.provider]);
    expect(await ids({ model: 'claude' })).toEqual([rows.model]);
    expect(await ids({ outcome: 'truncated' })).toEqual([rows.outcome]);
    expect(await ids({ end_user: 'user-7' })).toEqual([rows.user]);
    expect(await ids({ session: 'session-12' })).toEqual([rows.session]);
    expect(await ids({ subject: 'repo:acme/api' })).toEqual([rows.subject]);
    expect(await ids({ min_duration_ms: 5_001 })).toEqual([]);
    expect(await ids({ status: statusesOf('429')! })).toEqual([rows.limited]);
    expect(await ids({ status: statusesOf('9xx')! })).toEqual([rows.strange]);
    expect(await ids({ status: statusesOf('503')! })).toEqual([rows.failed]);
    expect((await ids({ status: statusesOf('5xx')! })).sort()).toEqual([rows.failed, rows.worst].sort());
    const bad = ['outcome', 'limited', 'failed', 'worst', 'strange'].map((name) => rows[name]).sort();
    expect((await ids({ failed: true })).sort()).toEqual(bad);
    expect(await ids({ failed: false })).toHaveLength(1 + Object.keys(odd).length - bad.length);
    expect(await ids({ min_duration_ms: 5_000 })).toEqual([rows.slow]);
    expect(await ids({ team: OTHER, model: 'claude' })).toEqual([]);
    expect(await ids({ to: at(2) })).toEqual([plain]);
  });

  it('takes from as inclusive, to as exclusive, recorded_after as exclusive', async () => {
    const all = [];
    for (let i = 1; i <= 3; i++) all.push(await insertRow(database, at(i), { recorded_at: at(10 + i) }));
    expect(await ids({ from: at(2) })).toEqual([all[2], all[1]]);
    expect(await ids({ to: at(2) })).toEqual([all[0]]);
    expect(await ids({ from: at(2), to: at(3) })).toEqual([all[1]]);
    expect(await ids({ recorded_after: at(12) })).toEqual([all[2]]);
  });

  it.each(['nonsense', '', '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-7fff-bfff-ffffffffffff'])(
    'has no row %j',
    async (id) => {
      await expect(reader.get(id)).rejects.toMatchObject({ kind: 'not_found' });
    },
  );

  it.each(['x', '', 'AAAAAAAAAAAAAAAAAAAAAA', 'AYkKXayWdwu8zrMCCZqAVw=='])(
    'rejects the cursor %j',
    async (cursor) => {
      await expect(reader.list({ limit: 1, cursor })).rejects.toMatchObject({ kind: 'invalid' });
    },
  );

  it('reads one partition for one id, and no later day for a page', async () => {
    const id = await insertRow(database, at(1));
    await insertRow(database, new Date('2031-01-02Z'));
    const [plan] = await database.query<{ 'QUERY PLAN': string }>(
      `EXPLAIN (FORMAT JSON) SELECT id FROM request_log WHERE started_at = '2031-01-01T00:00:01Z' AND id = '${id}'`,
    );
    expect(JSON.stringify(plan)).toContain('request_log_20310101');
    expect(JSON.stringify(plan)).not.toContain('request_log_20310102');
    expect((await reader.get(id)).id).toBe(id);
  });
});
