import { createClient } from '@clickhouse/client';
import { clickhouseDdl } from '../../../src/sinks/clickhouse-table.js';
import type { SinkView } from '../../../src/sinks/sinks.schema.js';
import { eventually } from '../../support/eventually.js';
import { LogCluster } from '../../support/log-cluster.js';
import type { GatewayProcess } from '../../support/process.js';
import { Workplace } from '../../support/workplace.js';
import { insertCalls } from '../log-rows.js';
import { installServers, SinkServer } from './servers.js';

const ADMIN_TOKEN = 'test-admin-token-0123456789';
const TABLE = 'request_log';
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const ROWS = 3_000;

/** Midnight, five days ago: the calls are spread over two days from then on. */
const FIRST = Math.floor(Date.now() / DAY_MS - 5) * DAY_MS;
const END = FIRST + 2 * DAY_MS;
const iso = (ms: number) => new Date(ms).toISOString();

let cluster: LogCluster;
let workplace: Workplace;
let clickhouse: SinkServer;
let gateway: GatewayProcess;
let url = '';
beforeAll(async () => {
  const { python } = installServers();
  cluster = await LogCluster.start();
  workplace = await Workplace.make();
  clickhouse = await SinkServer.clickhouse(python);
  await startGateway();
  await admin('POST', '/groups', { name: 'all', teams: ['default'] });
}, 1_800_000);
afterAll(async () => {
  await workplace.remove();
  await clickhouse.remove();
  await cluster.remove();
});

async function startGateway(settings: Record<string, string> = {}): Promise<void> {
  gateway = workplace.gateway({
    DATABASE_URL: cluster.url,
    ADMIN_TOKEN,
    CONSOLE: 'off',
    REQUEST_LOG_ARCHIVE: 'warehouse',
    ...settings,
  });
  url = await gateway.ready();
  await eventually(async () => (await fetch(`${url}/health/ready`).catch(() => null))?.status === 200);
}

async function text(method: string, path: string, body?: object): Promise<string> {
  const response = await fetch(`${url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const received = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${received}`);
  return received;
}
const admin = async <T>(method: string, path: string, body?: object) =>
  JSON.parse(await text(method, path, body)) as T;

interface Usage {
  data: object[];
  next_cursor: string | null;
  totals: object | null;
  as_of?: string;
  source?: string;
}

const RANGE = `from=${iso(FIRST)}&to=${iso(END)}`;
const GROUPS = [
  ...[
    'team,day',
    'key,hour',
    'provider,month',
    'model,week',
    'model,half_hour',
    'team,key,model',
    'group,team',
    'end_user',
  ],
  ...['session,day', 'tag:env', 'tag:team.name,day', 'end_user,tag:env,model'],
];
const QUESTIONS = [
  ...GROUPS.map((group_by) => `group_by=${group_by}&${RANGE}`),
  ...['Europe/Berlin', 'Asia/Kathmandu', 'America/St_Johns'].flatMap((tz) =>
    ['hour', 'day', 'week', 'month'].map((period) => `group_by=model,${period}&tz=${tz}&${RANGE}`),
  ),
  ...['calls', 'errors', 'tokens', 'cost'].map((sort) => `group_by=end_user&sort=${sort}&${RANGE}`),
  ...[
    ...['status=5xx', 'status=429', 'outcome=retried', 'failed=true', 'failed=false', 'model=gpt-4o'],
    ...['min_duration_ms=1500', 'end_user=user-3', 'session=session-1', 'provider=default', 'team=default'],
    'group=all',
    'model=none',
  ].map((filter) => `group_by=model,day&${filter}&${RANGE}`),
  `group_by=end_user,day&series=3&sort=calls&${RANGE}`,
  `group_by=tag:env,hour&series=2&${RANGE}`,
  // Cut half hours.
  `group_by=team,day&from=${iso(FIRST + HOUR_MS + 61_000)}&to=${iso(END - 61_000)}`,
];

async function usage(question: string): Promise<Usage> {
  const { as_of: at, source, ...rest } = await admin<Usage>('GET', `/usage?limit=400&${question}`);
  expect(typeof at).toBe('string');
  return { ...rest, source: source! };
}

/** All pages of a question. */
async function pages(question: string): Promise<object[]> {
  const rows: object[] = [];
  for (let cursor = ''; ;) {
    const page = await admin<Usage>('GET', `/usage?limit=3&${question}${cursor}`);
    rows.push(...page.data);
    if (page.next_cursor === null) return rows;
    expect(page.data).toHaveLength(3);
    cursor = `&cursor=${page.next_cursor}`;
  }
}

const PAGED = [
  `group_by=end_user,model&${RANGE}`,
  `group_by=end_user,day&sort=cost&${RANGE}`,
  `group_by=tag:env,end_user&sort=tokens&${RANGE}`,
  `group_by=end_user,day&series=3&sort=cost&${RANGE}`,
];
const EXPORTS = [
  ...['', '&model=gpt-4o', '&failed=true', '&limit=1700', '&end_user=user-3'].map(
    (filter) => `format=ndjson&${RANGE}${filter}`,
  ),
  `format=csv&${RANGE}`,
];
const exported = async (query: string) => {
  const received = await text('GET', `/requests/export?${query}`);
  if (query.startsWith('format=csv')) return received;
  return received
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as object);
};

it('counts and exports the same from the archive as from Postgres, for the same rows', async () => {
  await insertCalls(cluster.url, ROWS, { from: FIRST, apart: (2 * DAY_MS - 2_000) / ROWS });
  // Days are dropped only if the log has one for yesterday.
  await insertCalls(cluster.url, 1, { from: Date.now() - DAY_MS });
  // Every case: without tokens, cost, model or status; each outcome; end users, sessions and tags.
  await cluster.query(`
    UPDATE request_log SET
      model = CASE WHEN n % 11 > 0 THEN model END,
      status = (ARRAY[200, 200, 200, 429, 500, NULL])[1 + n % 6],
      outcome = (ARRAY['completed', 'completed', 'retried', 'truncated', 'client_aborted', 'cached', 'replayed'])[1 + n % 7],
      prompt_tokens = CASE WHEN n % 5 > 0 THEN prompt_tokens END,
      completion_tokens = CASE WHEN n % 4 > 0 THEN completion_tokens END,
      cost_usd = CASE WHEN n % 3 > 0 THEN cost_usd END,
      usage_final = (ARRAY[true, false, NULL])[1 + n % 3],
      cost_low_usd = CASE WHEN n % 7 > 0 THEN 0.000000011 END,
      cost_high_usd = CASE WHEN n % 19 > 0 THEN 0.000000222 END,
      saved_usd = CASE WHEN n % 13 = 0 THEN 0.000000123 END,
      duration_ms = CASE WHEN n % 17 > 0 THEN (ARRAY[0, 49.99, 50, 100, 249.5, 250, 1000, 3999, 59999.9, 60000, 123456])[1 + n % 11] END,
      end_user = CASE WHEN n % 8 > 0 THEN 'user-' || n % 8 END,
      session_id = CASE WHEN n % 9 > 0 THEN 'session-' || n % 9 END,
      tags = CASE n % 4 WHEN 1 THEN '{"env":"prod"}' WHEN 2 THEN '{"env":"näher \\"x\\"","team.name":"a"}' WHEN 3 THEN '{}' END::jsonb,
      user_agent = CASE WHEN n % 10 = 0 THEN '=cmd,"x"' END
    FROM (SELECT id AS row, (row_number() OVER (ORDER BY id))::int AS n FROM request_log) AS numbered WHERE id = row`);
  const client = createClient({ url: `http://127.0.0.1:${clickhouse.port}` });
  for (const statement of clickhouseDdl({ table: TABLE }).split(';').slice(0, -1))
    await client.command({ query: statement });
  await client.close();
  await admin('POST', '/sinks', {
    name: 'warehouse',
    kind: 'clickhouse',
    url: `http://127.0.0.1:${clickhouse.port}`,
    target: TABLE,
  });
  const isSent = ({ rows_sent: rows, state }: SinkView) => rows > ROWS && state === 'current';
  await eventually(
    async () => (await admin<{ data: SinkView[] }>('GET', '/sinks')).data.every(isSent),
    60_000,
  );

  // Nor are days that are not added up yet.
  const isAdded = `SELECT (SELECT cursor FROM usage_rollup) >= (SELECT max(recorded_at) FROM request_log) AS added`;
  await eventually(async () => (await cluster.query<{ added: boolean }>(isAdded))[0]!.added, 60_000);

  const before = [];
  for (const question of QUESTIONS) before.push(await usage(question));
  for (const { data, source } of before) expect([source, Array.isArray(data)]).toEqual(['log', true]);
  expect(before.filter(({ data }) => data.length > 0)).toHaveLength(QUESTIONS.length - 1);
  const beforePaged = [];
  for (const question of PAGED) beforePaged.push(await pages(question));
  const beforeExports = [];
  for (const query of EXPORTS) beforeExports.push(await exported(query));
  expect(beforeExports[0]).toHaveLength(ROWS);

  // The gateway itself drops the days, and keeps sums of one day only.
  await gateway.stop();
  await startGateway({ REQUEST_LOG_RETENTION_DAYS: '1', USAGE_RETENTION_DAYS: '1' });
  await eventually(
    async () =>
      (await cluster.query<{ rows: number }>('SELECT count(*)::int AS rows FROM request_log'))[0]!.rows === 1,
    60_000,
  );
  for (const [i, question] of QUESTIONS.entries())
    expect([question, await usage(question)]).toEqual([question, { ...before[i], source: 'archive' }]);
  for (const [i, question] of PAGED.entries())
    expect([question, await pages(question)]).toEqual([question, beforePaged[i]]);
  for (const [i, query] of EXPORTS.entries())
    expect([query, await exported(query)]).toEqual([query, beforeExports[i]]);
}, 600_000);
