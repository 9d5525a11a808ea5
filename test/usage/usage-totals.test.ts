import type { Settings } from '../../src/config/settings.js';
import { ReaderPool } from '../../src/requests/reader-pool.js';
import type { UsageGroup, UsageSort } from '../../src/usage/usage-groups.js';
import { type UsageRow, UsageTotals } from '../../src/usage/usage-totals.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { never } from '../support/never.js';
import { insertRow, KEY, TEAM } from '../request-log/rows.js';

let database: TestDatabase;
let pool: ReaderPool;
let totals: UsageTotals;
const OTHER = '01890a5d-ac96-774b-bcce-b302099a8059';

beforeAll(async () => {
  database = await createDatabase();
  // A session east of UTC: its days begin in the UTC day before.
  await database.query(
    `ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET timezone TO 'Pacific/Auckland'`,
  );
  pool = new ReaderPool({ databaseUrl: database.url } as Settings);
  totals = new UsageTotals(pool, { usageRetentionDays: 800, requestLogRetentionDays: 90 } as Settings);
  const row = (time: string, columns: object) =>
    insertRow(database, new Date(`2031-01-${time}Z`), { ...columns });
  await row('01T00:00:00', {
    prompt_tokens: 1,
    completion_tokens: 2,
    cached_tokens: 3,
    reasoning_tokens: 4,
    cache_write_tokens: 5,
  });
  await row('01T23:59:59.999', { prompt_tokens: 10, model: null });
  await row('02T00:00:00', { prompt_tokens: 100, team_id: OTHER });
  await row('02T01:00:00', { outcome: 'replayed', model: null });
  await row('02T01:30:00', { outcome: 'client_aborted', status: 200 });
  await row('02T02:00:00', { outcome: 'client_aborted', status: null });
  await row('02T02:00:01', { outcome: 'completed', status: 429 });
  await row('02T02:00:02', { outcome: 'truncated', status: 200, key_id: OTHER });
  await row('02T02:00:03', {
    outcome: 'interrupted',
    status: null,
    request_bytes: null,
    response_bytes: null,
  });
});
afterAll(async () => {
  await pool.onApplicationShutdown();
  await database.drop();
});

async function all(groups: UsageGroup[], limit: number, sort?: UsageSort): Promise<UsageRow[]> {
  const rows: UsageRow[] = [];
  let cursor: string | undefined;
  do {
    const page = await totals.list(groups, { limit, cursor, sort });
    expect(page.data.length).toBeLessThanOrEqual(limit);
    rows.push(...page.data);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return rows;
}

describe('usage', () => {
  never('adds up by UTC day, newest first; a replayed call counts as a call, without tokens', async () => {
    const sums = { cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0, completion_tokens: 0 };
    const unknown = { unknown_calls: 0, unknown_low_usd: null, unknown_high_usd: null, unbounded_calls: 0 };
    const more = { ...unknown, cost_usd: null, p50_ms: null, p95_ms: null };
    expect(await totals.list(['day'], { limit: 10 })).toEqual({
      as_of: expect.any(String) as string,
      source: 'log',
      data: [
        {
          ...sums,
          ...more,
          day: '2031-01-02',
          calls: 7,
          unpriced_calls: 1,
          cost_usd: null,
          retried_attempts: 0,
          saved_usd: null,
          errors: 3,
          calls_without_tokens: 4,
          total_tokens: 100,
          prompt_tokens: 100,
          request_bytes: 60,
          response_bytes: 120,
        },
        {
          ...more,
          day: '2031-01-01',
          calls: 2,
          unpriced_calls: 2,
          cost_usd: null,
          retried_attempts: 0,
          saved_usd: null,
          errors: 0,
          calls_without_tokens: 0,
          total_tokens: 13,
          prompt_tokens: 11,
          completion_tokens: 2,
          cached_tokens: 3,
          cache_write_tokens: 5,
          reasoning_tokens: 4,
          request_bytes: 20,
          response_bytes: 40,
        },
      ],
      next_cursor: null,
      totals: {
        ...unknown,
        calls: 9,
        retried_attempts: 0,
        saved_usd: null,
        errors: 3,
        calls_without_tokens: 4,
        unpriced_calls: 3,
        cost_usd: null,
        cache_write_tokens: 5,
        total_tokens: 113,
        prompt_tokens: 111,
        completion_tokens: 2,
        cached_tokens: 3,
        reasoning_tokens: 4,
        request_bytes: 80,
        response_bytes: 160,
      },
    });
  });

  it.each<[UsageSort, keyof UsageRow]>([
    ['calls', 'calls'],
    ['errors', 'errors'],
    ['tokens', 'total_tokens'],
    ['cached_tokens', 'cached_tokens'],
    ['cache_write_tokens', 'cache_write_tokens'],
    ['completion_tokens', 'completion_tokens'],
  ])('sorts by %s, the largest first, and pages through ties too', async (sort, sum) => {
    const groups: UsageGroup[] = ['hour', 'model', 'key'];
    const whole = await all(groups, 500, sort);
    expect(whole.length).toBeGreaterThan(5);
    const sums = whole.map((row) => Number(row[sum]));
    expect(sums).toEqual(sums.toSorted((a, b) => b - a));
    expect(new Set(sums).size).toBeLessThan(sums.length);
    expect(await all(groups, 1, sort)).toEqual(whole);
    expect(await all(groups, 2, sort)).toEqual(whole);
    expect(whole).toHaveLength((await all(groups, 500)).length);
  });

  it('has the totals of all groups on the first page, and none on the others', async () => {
    const first = await totals.list(['hour'], { limit: 1, sort: 'calls' });
    expect(first.totals).toMatchObject({ calls: 9, errors: 3 });
    const second = await totals.list(['hour'], { limit: 1, sort: 'calls', cursor: first.next_cursor! });
    expect(second.totals).toBeNull();
    expect((await totals.list(['hour'], { limit: 1, model: 'none' })).totals).toMatchObject({ calls: 0 });
    // The cursor of another order.
    await expect(totals.list(['hour'], { limit: 1, cursor: first.next_cursor! })).rejects.toMatchObject({
      kind: 'invalid',
    });
  });

  it('counts the calls whose tokens are unknown', async () => {
    const from = new Date('2031-02-01T00:00:00Z');
    const cases: [number, Record<string, unknown>][] = [
      [1, { status: 200 }], // such as a stream without include_usage
      [1, { status: null, outcome: 'client_aborted' }],
      [1, { status: 200, outcome: 'truncated' }],
      [0, { status: 200, prompt_tokens: 0 }],
      [0, { status: 200, completion_tokens: 5 }],
      [0, { status: 429 }],
      [0, { status: 502, outcome: 'upstream_error' }],
      [0, { status: 200, outcome: 'replayed' }],
      [0, { status: 200, outcome: 'cached' }],
      [0, { status: 200, method: 'GET', path: '/v1/models' }],
    ];
    for (const [i, [, columns]] of cases.entries())
      await insertRow(database, from, { ...columns, provider: `case ${i}` });
    const { data } = await totals.list(['provider'], { limit: 20, from });
    expect(data.map(({ provider, calls_without_tokens }) => [provider, calls_without_tokens])).toEqual(
      cases.map(([count], i) => [`case ${i}`, count]),
    );
    await database.query('DELETE FROM request_log WHERE started_at >= $1', [from]);
  });

  never(
    'counts the calls whose cost is unknown and what they may have cost, beside the sum of costs',
    async () => {
      const from = new Date('2031-02-01T00:00:00Z');
      const tokens = { prompt_tokens: 3 };
      const cases: Record<string, unknown>[] = [
        { ...tokens, usage_final: true, cost_usd: '1' },
        { ...tokens, usage_final: true },
        { ...tokens, usage_final: null },
        { ...tokens, usage_final: false, cost_low_usd: '0.2', cost_high_usd: '0.000000001' },
        { ...tokens, usage_final: false, cost_low_usd: '0.000000001' },
        // A WebSocket: what ended is known, what is open comes on top.
        { ...tokens, usage_final: false, cost_usd: '2', cost_low_usd: '0', cost_high_usd: '4' },
        // Bounds of usage that became final later are none.
        { ...tokens, usage_final: true, cost_usd: '4', cost_low_usd: '9', cost_high_usd: '9' },
      ];
      for (const columns of cases) await insertRow(database, from, columns);
      const sums = {
        ...{ calls: 7, cost_usd: '7.000000000', unpriced_calls: 2, unknown_calls: 3, unbounded_calls: 1 },
        ...{ unknown_low_usd: '0.200000001', unknown_high_usd: '4.000000001' },
      };
      const page = await totals.list(['day'], { limit: 2, from });
      expect(page).toMatchObject({ data: [sums], totals: sums });
      const [team, month, user] = await Promise.all(
        [
          `usage_by_team_day WHERE day = '2031-02-01'`,
          `cost_by_team_month WHERE month = '2031-02-01'`,
          `cost_by_user_day WHERE day = '2031-02-01'`,
        ].map(async (view) => (await database.query(`SELECT * FROM ${view}`))[0]),
      );
      const { calls: _, ...amounts } = Object.fromEntries(
        Object.entries(sums).map(([name, value]) => [name, String(value)]),
      );
      for (const view of [team, month, user]) expect(view).toMatchObject(amounts);
      await database.query('DELETE FROM request_log WHERE started_at >= $1', [from]);
    },
  );

  it('groups by anything, in the same order whatever was said first', async () => {
    expect(await totals.list(['team', 'hour'], { limit: 3 })).toMatchObject({
      data: [
        { hour: '2031-01-02T02:00:00Z', team_id: TEAM, calls: 4 },
        { hour: '2031-01-02T01:00:00Z', team_id: TEAM, calls: 2 },
        { hour: '2031-01-02T00:00:00Z', team_id: OTHER, calls: 1 },
      ],
    });
    expect(await totals.list(['model', 'provider'], { limit: 3 })).toMatchObject({
      data: [
        { provider: 'default', model: 'gpt-4o', calls: 7 },
        { provider: 'default', model: null, calls: 2 },
      ],
    });
    expect(await totals.list(['key'], { limit: 3 })).toMatchObject({
      data: [
        { key_id: KEY, calls: 8, errors: 2 },
        { key_id: OTHER, calls: 1, errors: 1 },
      ],
    });
  });

  it('groups by tags whose names are longer than a name in Postgres, and pages through them', async () => {
    const from = new Date('2031-03-01T00:00:00Z');
    const [a, b] = [`${'t'.repeat(63)}a`, `${'t'.repeat(63)}b`];
    for (const tags of [{ [a]: '1' }, { [a]: '1', [b]: '2' }, {}])
      await insertRow(database, from, { tags: JSON.stringify(tags) });
    const groups: UsageGroup[] = [`tag:${a}`, `tag:${b}`];
    const first = await totals.list(groups, { limit: 1, from });
    expect(first.data).toMatchObject([{ tags: { [a]: '1', [b]: '2' }, calls: 1 }]);
    const second = await totals.list(groups, { limit: 1, from, cursor: first.next_cursor! });
    expect(second.data).toMatchObject([{ tags: { [a]: '1', [b]: null }, calls: 1 }]);
    const third = await totals.list(groups, { limit: 1, from, cursor: second.next_cursor! });
    expect(third).toMatchObject({ data: [{ tags: { [a]: null, [b]: null }, calls: 1 }], next_cursor: null });
    await database.query('DELETE FROM request_log WHERE started_at >= $1', [from]);
  });

  never.each<UsageGroup[][]>([
    [['team', 'day']],
    [['model']],
    [['day', 'model', 'key']],
    [['hour', 'team', 'model']],
  ])('pages through %j, each group once', async (groups) => {
    const whole = await all(groups, 500);
    expect(whole.length).toBeGreaterThan(1);
    expect(await all(groups, 1)).toEqual(whole);
    expect(await all(groups, 2)).toEqual(whole);
  });

  it('filters as the list does', async () => {
    expect((await totals.list(['day'], { limit: 9, status: [429, 400] })).data).toMatchObject([{ calls: 1 }]);
    const from = new Date('2031-01-02T02:00:00Z');
    expect((await totals.list(['team'], { limit: 9, from })).data).toMatchObject([{ calls: 4 }]);
    expect((await totals.list(['team'], { limit: 9, team: KEY })).data).toEqual([]);
  });

  it.each<[string, UsageGroup, string, object, 'from' | 'to' | null]>([
    ['sums', 'model', 'UTC', { from: 800 }, null],
    ['sums longer ago than they are kept', 'model', 'UTC', { from: 802 }, 'from'],
    ['sums of a half hour that is cut', 'model', 'UTC', { from: 100.01 }, 'from'],
    ['sums up to a half hour that is cut', 'model', 'UTC', { to: 100.01 }, 'to'],
    ['rows', 'end_user', 'UTC', { from: 90 }, null],
    ['rows longer ago than they are kept', 'end_user', 'UTC', { from: 100 }, 'from'],
    ['rows, for the time zone', 'day', 'Asia/Kathmandu', { from: 100 }, 'from'],
    ['sums, whatever the time zone', 'half_hour', 'Asia/Kathmandu', { from: 100 }, null],
    ['sums, without a period', 'model', 'Asia/Kathmandu', { from: 100 }, null],
    ['rows, for the filter', 'day', 'UTC', { from: 100, status: '5xx' }, 'from'],
  ])('answers for times of which it has all: %s', async (_, group, zone, ago, field) => {
    const today = Math.floor(Date.now() / 86_400_000);
    const filter = Object.fromEntries(
      Object.entries(ago).map(([name, value]) => [
        name,
        typeof value === 'number' ? new Date((today - value) * 86_400_000) : (value as string),
      ]),
    );
    const asked = totals.list([group], { limit: 1, ...filter }, zone);
    if (field === null) expect(await asked).toMatchObject({ totals: expect.anything() as object });
    else await expect(asked).rejects.toMatchObject({ kind: 'invalid', details: [{ field }] });
  });

  it.each([
    'x',
    'bnVsbA',
    Buffer.from('["a"]').toString('base64url'),
    Buffer.from('["a\\u0000","b"]').toString('base64url'),
  ])('rejects the cursor %j', async (cursor) => {
    await expect(totals.list(['team', 'day'], { limit: 1, cursor })).rejects.toMatchObject({
      kind: 'invalid',
    });
  });

  never('agrees with the views of psql', async () => {
    const views = await database.query(
      'SELECT day::text, team_id, calls::int, errors::int, calls_without_tokens::int, prompt_tokens::int FROM usage_by_team_day ORDER BY day DESC, team_id',
    );
    const rows = await all(['team', 'day'], 500);
    expect(views).toEqual(
      rows.map(({ day, team_id, calls, errors, calls_without_tokens, prompt_tokens }) => ({
        day,
        team_id,
        calls,
        errors,
        calls_without_tokens,
        prompt_tokens,
      })),
    );
    const [keys, models, errors] = await Promise.all(
      ['usage_by_key_day', 'usage_by_model_day', 'errors_by_key_hour'].map((view) =>
        database.query(`SELECT * FROM ${view}`),
      ),
    );
    expect(keys).toHaveLength(3);
    expect(models).toHaveLength(4);
    expect(errors).toMatchObject([{ errors: '1' }, { errors: '1' }, { errors: '1' }]);
    const hours = await database.query(
      "SELECT DISTINCT hour = '2031-01-02T02:00:00Z' AS is_it, pg_typeof(hour)::text AS type FROM errors_by_key_hour",
    );
    expect(hours).toEqual([{ is_it: true, type: 'timestamp with time zone' }]);
  });

  never('sorts by cost, in exact amounts, and pages through groups without one', async () => {
    // The last two differ by less than a float can tell apart.
    const costs = ['0.5', '123456789.000000001', '123456789.000000002'];
    for (const [i, cost_usd] of costs.entries())
      await insertRow(database, new Date('2031-01-03T00:00:00Z'), { cost_usd, model: `paid-${i}` });
    const whole = await all(['model'], 500, 'cost');
    expect(whole.slice(0, 3).map(({ model }) => model)).toEqual(['paid-2', 'paid-1', 'paid-0']);
    expect(whole.length).toBeGreaterThan(4);
    expect(await all(['model'], 1, 'cost')).toEqual(whole);
    const { totals: sums } = await totals.list(['model'], { limit: 1, sort: 'cost' });
    expect(sums!.cost_usd).toBe('246913578.500000003');
  });

  it('sorts by the 95th percentile that it shows, the slowest first, and pages', async () => {
    const at = new Date('2031-01-04T00:00:00Z');
    for (const [model, ...durations] of [
      ['fast', 10, 20, 40],
      ['mixed', 10, 10, 10, 900],
      ['slow', 3_000, 3_500, 7_000],
      ['slower', 3_000, 3_500, 7_900, 7_900, 7_900],
      ['slowest', 100_000],
    ] as [string, ...number[]][])
      for (const duration_ms of durations) await insertRow(database, at, { model, duration_ms });
    // An attempt that was retried is no call.
    await insertRow(database, at, { model: 'fast', duration_ms: 200_000, outcome: 'retried' });
    const whole = await all(['model'], 500, 'p95');
    expect(whole.slice(0, 5).map(({ model }) => model)).toEqual([
      'slowest',
      'slower',
      'slow',
      'mixed',
      'fast',
    ]);
    const shown = whole.map(({ p95_ms }) => p95_ms ?? 0);
    expect(shown).toEqual(shown.toSorted((a, b) => b - a));
    expect(await all(['model'], 1, 'p95')).toEqual(whole);
  });

  it('leaves the series with the largest sums over all periods, and counts all in the totals', async () => {
    // The largest one of each day is not among the largest two of all days.
    for (const [model, ...costs] of [
      ['steady', '4', '4', '4'],
      [null, '5', '0', '5'],
      ['one-day', '0', '9', '0'],
      ['small', '1', '1', '1'],
    ] as const)
      for (const [i, cost_usd] of costs.entries())
        await insertRow(database, new Date(`2031-02-0${i + 1}T00:00:00Z`), {
          ...{ provider: 'of-series', model, cost_usd },
        });
    const request = { provider: 'of-series', series: 2, limit: 500 };
    const shown = ({ data }: { data: UsageRow[] }) => data.map(({ day, model }) => [day, model]);
    const byDay = await totals.list(['model', 'day'], request);
    expect(shown(byDay)).toEqual(
      ['2031-02-03', '2031-02-02', '2031-02-01'].flatMap((day) => [
        [day, 'steady'],
        [day, null],
      ]),
    );
    expect(byDay.totals).toMatchObject({ calls: 12, cost_usd: '34.000000000' });
    const bySum = await totals.list(['model', 'day'], { ...request, sort: 'cost' });
    expect(shown(bySum).slice(0, 2)).toEqual([
      ['2031-02-03', null],
      ['2031-02-01', null],
    ]);
    const first = await totals.list(['model', 'day'], { ...request, limit: 4 });
    const second = await totals.list(['model', 'day'], { ...request, limit: 4, cursor: first.next_cursor! });
    expect([...first.data, ...second.data]).toEqual(byDay.data);
    // All have three calls: the first names.
    expect(shown(await totals.list(['model'], { ...request, sort: 'calls' }))).toEqual([
      [undefined, 'one-day'],
      [undefined, 'small'],
    ]);
  });
});
