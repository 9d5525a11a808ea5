import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { createDays, KEY, TEAM } from '../request-log/rows.js';

const MINUTE_MS = 60_000;

let postern: TestGateway;
/** The last minute that has ended. */
let to: Date;
beforeAll(async () => {
  postern = await startTestGateway();
  to = new Date(Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS);
  await createDays(postern.database, to, to.getTime() - 5 * 3_600_000);
  await postern.database.query(
    `INSERT INTO request_log (started_at, id, team_id, key_id, provider, method, path, model, streamed, status, outcome,
       request_bytes, response_bytes, duration_ms, cost_usd)
     SELECT at, gen_random_uuid(), $2, $3, (ARRAY['openai', 'groq'])[1 + n % 2], 'POST', '/v1/responses', 'm', false,
       (ARRAY[200, 429, 500])[1 + n % 3], 'completed', 1, 1, n, n * 0.000000001
     FROM (SELECT n, date_trunc('milliseconds', $1::timestamptz - random() * interval '4 hours') AS at
           FROM generate_series(1, 5000) AS n) AS calls`,
    [to, TEAM, KEY],
  );
});
afterAll(() => postern.stop());

interface Page {
  data: Record<string, unknown>[];
  totals: { calls: number; errors: number };
}

const usage = (query: string) => postern.admin<Page>('GET', `/usage?${query}`);
const range = (minutes: number) =>
  `from=${new Date(to.getTime() - minutes * MINUTE_MS).toISOString()}&to=${to.toISOString()}`;

never.each(['UTC', 'Asia/Kathmandu'])('adds up the calls of each minute as SQL does (%s)', async (zone) => {
  const page = await usage(`${range(60)}&group_by=provider,minute&tz=${zone}&limit=500`);
  const rows = await postern.database.query<{ minute: string }>(
    `SELECT provider, to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:00"Z"') AS minute, count(*)::int AS calls,
       count(*) FILTER (WHERE status >= 400)::int AS errors, sum(cost_usd)::text AS cost_usd
     FROM request_log WHERE started_at >= $1 AND started_at < $2 GROUP BY 1, 2 ORDER BY 2 DESC, 1`,
    [new Date(to.getTime() - 60 * MINUTE_MS), to],
  );
  expect(new Set(rows.map(({ minute }) => minute)).size).toBe(60);
  expect(
    page.data.map(({ provider, minute, calls, errors, cost_usd }) => ({
      provider,
      minute,
      calls,
      errors,
      cost_usd,
    })),
  ).toEqual(rows);
});

never('counts an hour that cuts half hours exactly', async () => {
  const [{ calls }] = (await postern.database.query(
    'SELECT count(*)::int AS calls FROM request_log WHERE started_at >= $1 AND started_at < $2',
    [new Date(to.getTime() - 60 * MINUTE_MS), to],
  )) as [{ calls: number }];
  for (const group of ['minute', 'provider', 'model,minute'])
    expect((await usage(`${range(60)}&group_by=${group}&limit=500`)).totals.calls).toBe(calls);
});

it.each([
  ['takes a range of 3 hours', 180, 200],
  ['rejects a longer one', 181, 400],
])('%s', async (_, minutes, status) => {
  const response = await fetch(
    `${postern.url}/admin/v1/usage?${range(minutes)}&interval=minute&group_by=model`,
    {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    },
  );
  expect(response.status).toBe(status);
  if (status === 400) expect(await response.text()).toContain('at most 3 hours');
});

it('needs a beginning, and takes now as the end', async () => {
  const message = /from.*at most 3 hours/s;
  await expect(usage('group_by=minute')).rejects.toThrow(message);
  const from = new Date(Date.now() - 2 * 3_600_000).toISOString();
  expect((await usage(`group_by=minute&from=${from}`)).totals.calls).toBeGreaterThan(0);
  await expect(usage(`group_by=minute&from=2020-01-01T00:00:00Z`)).rejects.toThrow(message);
});

it.each([
  ['group_by=day&series=2', /series: needs a group that is no period/],
  ['group_by=team,day&series=2&sort=p95', /sort: cannot be p95 together with series/],
  ['group_by=team,day&series=0', /series: must be an integer from 1 to 50/],
  ['group_by=team,day&series=51', /series: must be an integer from 1 to 50/],
])('rejects %s', async (query, message) => {
  await expect(usage(query)).rejects.toThrow(message);
});
