import type pg from 'pg';
import type { Settings } from '../../src/config/settings.js';
import type { ExportRequest } from '../../src/requests/request-log.export.js';
import { RequestLogExport } from '../../src/requests/request-log.export.js';
import { ReaderPool } from '../../src/requests/reader-pool.js';
import { RequestLogReader } from '../../src/requests/request-log.reader.js';
import { SHOWN_COLUMNS } from '../../src/requests/request-view.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { createDays, insertRow } from '../request-log/rows.js';

let database: TestDatabase;
let pool: ReaderPool;
let exports: RequestLogExport;
const at = (second: number) => new Date(Date.UTC(2031, 0, 1, 0, 0, second));

beforeEach(async () => {
  database = await createDatabase();
  await createDays(database, Date.now());
  pool = new ReaderPool({ databaseUrl: database.url } as Settings);
  exports = new RequestLogExport(pool);
});
afterEach(async () => {
  await pool.onApplicationShutdown();
  await database.drop();
});

async function text(request: ExportRequest): Promise<string> {
  const opened = await exports.open(request);
  let all = '';
  for await (const piece of opened.chunks()) all += piece;
  await opened.close();
  return all;
}

const sessions = () =>
  database.query<{ state: string }>(
    "SELECT state FROM pg_stat_activity WHERE application_name = 'postern-export' AND datname = current_database()",
  );

/** The empty fields of a line after this column. */
const emptyAfter = (column: string) =>
  ','.repeat(SHOWN_COLUMNS.length - 1 - SHOWN_COLUMNS.findIndex((name) => name === column));

const FULL = {
  model: 'gpt-4o, "large"',
  request_bytes: '5000000000',
  ttfb_ms: 12.3,
  duration_ms: 0.001,
  prompt_tokens: 7,
  cached_tokens: 0,
  provider_request_id: 'a\nb\\c\u2028d😀',
  client_ip: '2001:db8::1',
  streamed: true,
};

describe('an export', () => {
  it('holds as NDJSON what the list shows, to the letter, in any time zone', async () => {
    await database.query(
      `ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET timezone TO 'Asia/Kolkata'`,
    );
    await insertRow(database, at(1), FULL);
    await insertRow(database, at(2), {
      status: null,
      model: null,
      request_bytes: null,
      outcome: 'interrupted',
    });
    const { data } = await new RequestLogReader(pool).list({ limit: 10 });
    expect(await text({ format: 'ndjson' })).toBe(data.map((row) => `${JSON.stringify(row)}\n`).join(''));
  });

  it('is CSV with a head, empty fields for null, quotes where needed', async () => {
    expect(await text({ format: 'csv' })).toBe(`${SHOWN_COLUMNS.join(',')}\n`);
    const id = await insertRow(database, at(1), { ...FULL, recorded_at: at(3) });
    const [, row] = /^.*\n([^]*)$/.exec(await text({ format: 'csv' }))!;
    expect(row).toBe(
      `${id},2031-01-01T00:00:01.000Z,2031-01-01T00:00:03.000Z,01890a5d-ac96-774b-bcce-b302099a8057,,` +
        '01890a5d-ac96-774b-bcce-b302099a8058,,default,POST,/v1/chat/completions,"gpt-4o, ""large""",true,200,' +
        `completed,,5000000000,20,12.3,0.001,7,,0,,"a\nb\\c\u2028d😀",,,2001:db8::1${emptyAfter('client_ip')}\n`,
    );
  });

  it('holds usage with a price of its own as an object in NDJSON, and as its text in CSV', async () => {
    const extra = { web_searches: 1, service_tier: 'batch' };
    await insertRow(database, at(1), { extra_usage: JSON.stringify(extra) });
    expect(JSON.parse(await text({ format: 'ndjson' }))).toMatchObject({ extra_usage: extra });
    expect(await text({ format: 'csv' })).toContain(
      `,"{""service_tier"": ""batch"", ""web_searches"": 1}"${emptyAfter('extra_usage')}\n`,
    );
  });

  it('has the names of team and key beside their IDs, in both formats', async () => {
    const team = '01890a5d-ac96-774b-bcce-b302099a8001';
    const key = '01890a5d-ac96-774b-bcce-b302099a8002';
    await database.query('INSERT INTO team (id, name) VALUES ($1, $2)', [team, '=search, "R&D"']);
    await database.query("INSERT INTO gateway_key (id, team_id, name) VALUES ($1, $2, 'ci')", [key, team]);
    await insertRow(database, at(1), { team_id: team, key_id: key });
    expect(SHOWN_COLUMNS.slice(3, 7)).toEqual(['team_id', 'team', 'key_id', 'key']);
    expect(await text({ format: 'csv' })).toContain(`,${team},"'=search, ""R&D""",${key},ci,default,`);
    expect(JSON.parse(await text({ format: 'ndjson' }))).toMatchObject({ team: '=search, "R&D"', key: 'ci' });
    const { data } = await new RequestLogReader(pool).list({ limit: 10 });
    expect(data).toMatchObject([{ team_id: team, team: '=search, "R&D"', key_id: key, key: 'ci' }]);
  });

  it.each(['=1+1', '+1', '-1', '@x', '\t=1', '\r=1', '＝1'])(
    'lets no spreadsheet run the cell %j, and leaves NDJSON exact',
    async (cell) => {
      await insertRow(database, at(1), { user_agent: cell });
      expect(await text({ format: 'csv' })).toContain(`'${cell}`);
      expect(JSON.parse(await text({ format: 'ndjson' }))).toMatchObject({ user_agent: cell });
    },
  );

  it('filters, limits and begins as the list does', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.unshift(await insertRow(database, at(i), { status: i < 4 ? 200 : 429 }));
    const got = async (request: Partial<ExportRequest>) =>
      (await text({ format: 'ndjson', ...request }))
        .split('\n')
        .slice(0, -1)
        .map((line) => (JSON.parse(line) as { id: string }).id);
    expect(await got({})).toEqual(ids);
    expect(await got({ limit: 2 })).toEqual(ids.slice(0, 2));
    expect(await got({ status: [429, 500] })).toEqual(ids.slice(0, 1));
    const { next_cursor } = await new RequestLogReader(pool).list({ limit: 2 });
    expect(await got({ cursor: next_cursor! })).toEqual(ids.slice(2));
    await expect(exports.open({ format: 'csv', cursor: 'x' })).rejects.toMatchObject({ kind: 'invalid' });
    await eventually(async () => (await sessions()).length === 0);
  });

  it('leaves nothing on the server when it is closed half-way', async () => {
    await database.query(
      `INSERT INTO request_log (started_at, id, team_id, key_id, provider, method, streamed, outcome)
       SELECT now(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'p', 'POST', false, 'completed'
       FROM generate_series(1, 1200)`,
    );
    const opened = await exports.open({ format: 'ndjson' });
    const chunks = opened.chunks();
    await chunks.next();
    await chunks.next();
    expect(await sessions()).toEqual([{ state: 'idle in transaction' }]);
    const { client } = opened as unknown as { client: pg.PoolClient };
    const { rows } = await client.query<object>('SHOW idle_in_transaction_session_timeout');
    expect(rows).toEqual([{ idle_in_transaction_session_timeout: '1min' }]);
    await opened.close();
    await chunks.return(undefined);
    await eventually(async () => (await sessions()).length === 0);
  });
});
