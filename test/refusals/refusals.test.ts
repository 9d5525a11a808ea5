import { Agent, request } from 'undici';
import { RefusalRetention } from '../../src/refusals/refusal-retention.service.js';
import { ADD, RefusalWriter } from '../../src/refusals/refusal-writer.service.js';
import { OTHER_ID, UNKNOWN_ID } from '../../src/refusals/refusal.entity.js';
import { generateKey } from '../../src/keys/key-secret.js';
import { runHere } from '../cli/run-here.js';
import { setPrice, startUsageProvider } from '../limits/limited-gateway.js';
import { Scrape } from '../observability/scrape.js';
import { changesApplied } from '../support/changes-applied.js';
import { eventually, timePasses } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { PostgresRelay } from '../support/postgres-relay.js';
import type { RawProvider } from '../support/raw-provider.js';
import { FULL } from '../support/scale.js';

const REQUESTS = FULL ? 100_000 : 4_000;
const CONNECTIONS = 50;
const MASTER_KEY = Buffer.alloc(32, 7).toString('base64');

interface Shown {
  data: {
    key: string | null;
    team: string | null;
    code: string;
    limit: string | null;
    calls: number;
    model?: string | null;
    last_request_id: string;
  }[];
  calls: number;
}
interface Issued {
  id: string;
  key: string;
  team_id: string;
}

let provider: RawProvider;
let first: TestGateway;
let second: TestGateway;
let relay: PostgresRelay;
const agent = new Agent({ connections: CONNECTIONS, pipelining: 1 });

beforeAll(async () => {
  provider = await startUsageProvider({ input: 100, output: 100 });
  first = await startTestGateway({ PROVIDER_URL: provider.url, MASTER_KEY });
  relay = await PostgresRelay.to(first.database.url);
  second = await startTestGateway(
    { PROVIDER_URL: provider.url, MASTER_KEY, DATABASE_URL: relay.url },
    first.database,
  );
  await setPrice(first);
  await first.admin('POST', '/teams', { name: 'search' });
});
afterAll(async () => {
  await agent.close();
  await second.stop();
  await relay.close();
  await first.stop();
  await provider.stop();
});
beforeEach(() => first.database.query('DELETE FROM refusal'));

let keys = 0;
/** A key whose creation both have read: a late notification of it would drop it from the cache of one of them. */
async function issue(members: object = {}): Promise<Issued> {
  const issued = await first.admin<Issued>('POST', '/keys', {
    team: 'search',
    name: `key-${++keys}`,
    ...members,
  });
  for (const gateway of [first, second]) await changesApplied(gateway);
  return issued;
}

async function send(gateway: TestGateway, key: string, body: object = { model: 'm', messages: [] }) {
  const response = await request(`${gateway.url}/v1/chat/completions`, {
    dispatcher: agent,
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await response.body.dump();
  return {
    status: response.statusCode,
    code: response.headers['x-gateway-error'],
    id: response.headers['x-gateway-request-id'] as string,
  };
}

const shown = (query = '') => first.admin<Shown>('GET', `/refusals${query}`);
/** Waits until so many are stored. */
const stored = (calls: number) => eventually(async () => (await shown('?limit=500')).calls === calls);

it(`adds up ${REQUESTS} requests over two replicas exactly, in few rows, with none in the log`, async () => {
  const { key, id } = await issue({ budgets: [{ usd: '0', period: 'day' }] });
  const before = await first.rowCount();
  let sent = 0;
  const lasts: string[] = [];
  const work = async (gateway: TestGateway) => {
    while (sent < REQUESTS) {
      sent++;
      const { status, code, id: last } = await send(gateway, key);
      expect([status, code]).toEqual([402, 'insufficient_quota']);
      lasts.push(last);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, i) => work(i % 2 ? first : second)));
  await stored(sent);
  const { data } = await shown(`?key=${id}&group_by=key,code,limit,model`);
  expect(data).toEqual([
    expect.objectContaining({
      team: 'search',
      key: `key-${keys}`,
      code: 'insufficient_quota',
      limit: `search/key-${keys} usd/day`,
      model: 'm',
      calls: sent,
    }),
  ]);
  expect(lasts).toContain(data[0]!.last_request_id);
  const minutes = await first.database.query<{ rows: number; minutes: number }>(
    'SELECT count(*)::int AS rows, count(DISTINCT minute)::int AS minutes FROM refusal',
  );
  expect(minutes[0]!.rows).toBe(minutes[0]!.minutes);
  expect(await first.rowCount()).toBe(before);
}, 1_200_000);

it('counts a flood of made-up keys as one', async () => {
  for (let i = 0; i < 40; i++) await send(first, generateKey());
  await stored(40);
  const rows = await first.database.query<{ key_id: string; code: string }>(
    'SELECT DISTINCT key_id, code FROM refusal',
  );
  expect(rows).toEqual([{ key_id: UNKNOWN_ID, code: 'invalid_api_key' }]);
  expect((await shown()).data).toEqual([
    expect.objectContaining({ team: null, key: null, limit: null, calls: 40 }),
  ]);
});

it('counts a flood of made-up models exactly, in few rows, and those of other keys beside it', async () => {
  const [flooding, quiet] = [await issue({ models: ['gpt-5'] }), await issue({ models: ['gpt-5'] })];
  const sent = 300;
  const flood = async (from: number) => {
    for (let i = from; i < sent; i += 10) await send(first, flooding.key, { model: `made-up-${i}` });
  };
  await Promise.all(Array.from({ length: 10 }, (_, from) => flood(from)));
  await send(first, quiet.key);
  await stored(sent + 1);
  const [rows] = await first.database.query<{ own: number; minutes: number; others: number; quiet: number }>(
    `SELECT count(*) FILTER (WHERE key_id = $1)::int AS own, count(DISTINCT minute)::int AS minutes,
            count(*) FILTER (WHERE key_id = $2)::int AS others, count(*) FILTER (WHERE key_id = $3 AND calls = 1)::int AS quiet
     FROM refusal`,
    [flooding.id, OTHER_ID, quiet.id],
  );
  expect(rows!.own).toBeLessThanOrEqual(50 * rows!.minutes);
  expect(rows!.others).toBeLessThanOrEqual(rows!.minutes);
  expect(rows!.quiet).toBe(1);
});

it('names the limit that rejected, of a team or a key', async () => {
  const team = await first.admin<{ id: string }>('POST', '/teams', {
    name: 'rated',
    limits: { requests_per_minute: 1 },
  });
  const { key } = await issue({ team: 'rated' });
  await send(first, key);
  expect((await send(first, key)).status).toBe(429);
  await stored(1);
  const { data } = await shown(`?team=${team.id}`);
  expect(data).toEqual([
    expect.objectContaining({ code: 'rate_limit_exceeded', limit: 'rated requests/minute', calls: 1 }),
  ]);
});

it('stores models of any content, cut to 200 characters, without keys in them', async () => {
  const { key } = await issue({ models: ['gpt-5'] });
  for (const model of ['a\0b', 'x'.repeat(1_000), '\ud83d\ude00'.repeat(150), `say ${key}`])
    expect(await send(first, key, { model, messages: [] })).toMatchObject({ code: 'model_not_allowed' });
  await stored(4);
  const { data } = await shown('?group_by=model');
  expect(data.map(({ model }) => model).sort()).toEqual(
    [null, 'a\ufffdb', 'x'.repeat(200), '\ud83d\ude00'.repeat(100)].sort(),
  );
});

it('prints no model that steers a terminal or turns its line around', async () => {
  const { key, id } = await issue({ models: ['gpt-5'] });
  const names = ['\u202e5-tpg', '\u2066iso', '\x1b[31mred\x1b[0m', 'two\r\nlines', 'b\0c', '\u05d0\u05d1'];
  for (const model of names) expect((await send(first, key, { model })).code).toBe('model_not_allowed');
  // Of so long a text it is not certain that it is a model.
  expect((await send(first, key, { model: 'x'.repeat(100_000) })).code).toBe('model_not_determined');
  await stored(names.length + 1);
  const { code, stdout } = await runHere(['refusals', '--key', id, '--group-by', 'model'], {
    POSTERN_URL: first.url,
    POSTERN_ADMIN_TOKEN: ADMIN_TOKEN,
  });
  expect(code).toBe(0);
  const shown = stdout.trimEnd().split('\n');
  expect(shown.join('')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  const printed = shown.slice(1, -1).map((line) => line.split(/ {2,}/)[0]);
  expect(printed.sort()).toEqual(
    ['-', '?5-tpg', '?iso', '?[31mred?[0m', 'two??lines', 'b\ufffdc', '\u05d0\u05d1'].sort(),
  );
});

it('shows a member of a team, and the holder of a key, only its own', async () => {
  const mine = await issue({ models: ['gpt-5'] });
  await first.admin('POST', '/teams', { name: 'other' }).catch(() => {});
  const other = await issue({ team: 'other', models: ['gpt-5'] });
  for (const { key } of [mine, other, other]) await send(first, key);
  await stored(3);
  const { token } = await first.admin<{ token: string }>('POST', '/tokens', {
    name: `member-${keys}`,
    role: 'team',
    teams: ['search'],
  });
  const ask = async (path: string, bearer: string) =>
    (await (
      await fetch(first.url + path, { headers: { authorization: `Bearer ${bearer}` } })
    ).json()) as Shown;
  expect(await ask('/admin/v1/refusals', token)).toMatchObject({ calls: 1, data: [{ team: 'search' }] });
  expect(await ask('/self/v1/refusals', other.key)).toEqual({
    calls: 2,
    data: [expect.objectContaining({ code: 'model_not_allowed', model: 'm', calls: 2, limit: null })],
  });
});

it('keeps the counts while Postgres is unavailable, and stores a batch once whose result was lost', async () => {
  const { key } = await issue({ models: ['gpt-5'] });
  expect((await send(second, key)).status).toBe(403);
  await stored(1);
  relay.set('*', 'cut');
  for (let i = 0; i < 3; i++) expect((await send(second, key)).status).toBe(403);
  await timePasses(FULL ? 180_000 : 6_000, 'longer than between two writes');
  for (let i = 0; i < 2; i++) expect((await send(second, key)).status).toBe(403);
  relay.set('*', 'none');
  await stored(6);

  const count = {
    minute: '2031-01-31T12:00:00Z',
    team_id: UNKNOWN_ID,
    key_id: UNKNOWN_ID,
    code: 'x',
    rule_nr: '0',
  };
  const batch = JSON.stringify([
    { ...count, provider: '', model: '', calls: 5, last_id: UNKNOWN_ID, last_at: '2031-01-31T12:00:00Z' },
  ]);
  const process = '01890a5d-ac96-774b-bcce-b302099a8057';
  for (const seq of [1, 1, 2, 1]) await first.database.query(ADD, [process, seq, batch]);
  const [row] = await first.database.query<{ calls: string }>(`SELECT calls FROM refusal WHERE code = 'x'`);
  expect(row!.calls).toBe('10');
});

it('keeps the counts if the clock is set forward between two writes', async () => {
  const writer = first.gateway.app.get(RefusalWriter, { strict: false });
  const { key } = await issue({ models: ['gpt-5'] });
  expect((await send(first, key)).status).toBe(403);
  const now = Date.now() + 3_600_000;
  const clock = jest.spyOn(Date, 'now').mockReturnValue(now);
  await writer['flush']().finally(() => clock.mockRestore());
  await stored(1);
});

it('drops the counts of an outage of more than 10 minutes, and says how many', async () => {
  const writer = second.gateway.app.get(RefusalWriter, { strict: false });
  const { key } = await issue({ models: ['gpt-5'] });
  expect((await send(second, key)).status).toBe(403);
  await stored(1);
  relay.set('*', 'cut');
  for (let i = 0; i < 3; i++) expect((await send(second, key)).status).toBe(403);
  // The first write takes what was counted, the next one finds it too old.
  await eventually(async () => {
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 660_000);
    const written = writer['flush']();
    clock.mockRestore();
    await written;
    return writer['dropped'] === 3;
  });
  relay.set('*', 'none');
  expect((await send(second, key)).status).toBe(403);
  await stored(2);
  expect((await Scrape.of(second.url)).sum('postern_refusals_dropped_total')).toBe(3);
  expect((await Scrape.of(first.url)).sum('postern_refusals_dropped_total')).toBe(0);
});

it('deletes what was counted before REFUSALS=off', async () => {
  const gateway = await startTestGateway({ REFUSALS: 'off' });
  try {
    await gateway.database.query(
      `INSERT INTO refusal SELECT now() - interval '100 days', $1, $1, 'a', 0, '', '', 1, $1, now()`,
      [UNKNOWN_ID],
    );
    gateway.gateway.app.get(RefusalRetention, { strict: false }).onInterval();
    await eventually(async () => (await gateway.database.query('SELECT FROM refusal')).length === 0);
  } finally {
    await gateway.stop();
  }
});

it('adds up by hour after 2 days, deletes after the retention, and announces a key with many', async () => {
  const { id, team_id: team } = await issue();
  const insert = (at: string, calls: number, code = 'a', model = '') =>
    first.database.query(`INSERT INTO refusal SELECT ${at}, $1, $2, $3, 0, '', $4, $5, $1, ${at}`, [
      team,
      id,
      code,
      model,
      calls,
    ]);
  const [{ hour } = { hour: '' }] = await first.database.query<{ hour: string }>(
    `SELECT format('%L::timestamptz', date_trunc('hour', now() - interval '3 days', 'UTC')) AS hour`,
  );
  await insert(hour, 1);
  await insert(`${hour} + interval '1 minute'`, 2, 'a', 'one');
  await insert(`${hour} + interval '2 minutes'`, 4, 'a', 'two');
  await insert(`date_trunc('hour', now() - interval '1 day', 'UTC') + interval '7 minutes'`, 8, 'a', 'three');
  await insert(`now() - interval '100 days'`, 16);
  await insert(`date_trunc('minute', now())`, 99, 'b');
  await insert(`date_trunc('minute', now())`, 500, 'rate_limit_exceeded');
  await first.database.query(`INSERT INTO webhook (id, shown_url, events, format, sealed)
    VALUES ('${id}', 'https://x', '{refusals.high}', 'slack', '')`);
  const retention = first.gateway.app.get(RefusalRetention);
  const events = () => first.database.query(`SELECT data FROM webhook_event WHERE type = 'refusals.high'`);
  // A run does nothing while that of the other gateway's interval holds the lock.
  await eventually(async () => {
    await retention.run();
    const old = await first.database.query(`SELECT FROM refusal WHERE minute < now() - interval '99 days'`);
    return old.length === 0;
  });
  expect(await events()).toEqual([]);
  await insert(`date_trunc('minute', now())`, 1, 'c');
  await eventually(async () => {
    await retention.run();
    return (await events()).length > 0;
  });
  await retention.run();
  expect(await events()).toEqual([
    {
      data: expect.objectContaining({ team: 'search', key: `key-${keys}`, calls: 100, code: 'b' }) as object,
    },
  ]);
  await first.database.query(`DELETE FROM webhook`);
  const rows = await first.database.query(
    `SELECT code, model, calls::int, minute = ${hour} AS whole FROM refusal WHERE minute < now() - interval '1 hour' ORDER BY minute`,
  );
  expect(rows).toEqual([
    { code: 'a', model: '', calls: 7, whole: true },
    { code: 'a', model: 'three', calls: 8, whole: false },
  ]);
  expect(
    await first.admin('GET', `/refusals?from=2020-01-01T00:00:00Z&group_by=code&interval=day&code=a`),
  ).toMatchObject({
    calls: 15,
    data: [{ calls: 8 }, { calls: 7 }],
  });
});

it('has views of keys by day and of limits by hour', async () => {
  const { key } = await issue({ budgets: [{ usd: '0', period: 'month' }] });
  await send(first, key);
  await stored(1);
  expect(await first.database.query('SELECT team, key, code, calls::int FROM refusals_by_key_day')).toEqual([
    { team: 'search', key: `key-${keys}`, code: 'insufficient_quota', calls: 1 },
  ]);
  expect(
    await first.database.query(
      'SELECT scope, resource, period, team, key, calls::int FROM refusals_by_limit_hour',
    ),
  ).toEqual([
    { scope: 'key', resource: 'usd', period: 'month', team: 'search', key: `key-${keys}`, calls: 1 },
  ]);
});
