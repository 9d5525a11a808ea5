import { randomInt } from 'node:crypto';
import { instantAt, startOfDay } from '../../src/platform/zoned-time.js';
import { insertRow } from '../request-log/rows.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { runHere } from './run-here.js';

const DAY_MS = 86_400_000;

let gateway: TestGateway;
/** 23:30 UTC of the day before yesterday: in Berlin it is yesterday. */
const late = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS - 30 * 60_000);
beforeAll(async () => {
  gateway = await startTestGateway({ REPORT_TIMEZONE: 'Europe/Berlin' });
  const { id, team_id } = await gateway.admin<{ id: string; team_id: string }>('POST', '/keys', {
    team: 'default',
    name: 'ci',
  });
  for (const at of [late, new Date(late.getTime() + DAY_MS)])
    await insertRow(gateway.database, at, { key_id: id, team_id });
});
afterAll(() => gateway.stop());

const run = async (...args: string[]) => {
  const ran = await runHere(args, { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN });
  expect(ran).toMatchObject({ code: 0, stderr: '' });
  return ran.stdout;
};
const json = async (...args: string[]) => JSON.parse(await run(...args, '--json')) as never;
const dayIn = (at: Date, zone: string) => at.toLocaleDateString('sv-SE', { timeZone: zone });

it('counts the days of REPORT_TIMEZONE, and those of --tz', async () => {
  const yesterday = dayIn(late, 'Europe/Berlin');
  const question = ['usage', '--group-by', 'day', '--from', yesterday];
  const end = ['--to', dayIn(new Date(late.getTime() + DAY_MS), 'Europe/Berlin')];
  expect(await json(...question, ...end)).toMatchObject({
    data: [{ day: yesterday, calls: 1 }],
    totals: { calls: 1 },
  });
  // In UTC, both calls are of other days.
  const utc = dayIn(late, 'UTC');
  expect(
    await json('usage', '--tz', 'UTC', '--group-by', 'day', '--from', utc, '--to', yesterday),
  ).toMatchObject({
    data: [{ day: utc, calls: 1 }],
  });
  expect(
    await json('--tz', 'UTC', 'usage', '--group-by', 'day', '--from', utc, '--to', yesterday),
  ).toMatchObject({
    data: [{ day: utc, calls: 1 }],
  });
  expect(await json('requests', 'list', '--from', yesterday, ...end)).toMatchObject({
    data: [{ started_at: late.toISOString() }],
  });
});

it('sets a price for days of the zone, and prints times in it', async () => {
  const set = ['prices', 'set', 'mine', 'm', '--input', '1', '--effective-from', '2026-11-15'];
  expect(await json(...set)).toMatchObject({ effective_from: '2026-11-14T23:00:00.000Z' });
  expect(await run('prices', 'list', '--catalog', 'mine')).toContain(' 2026-11-15 00:00 ');
  expect(await run('prices', 'list', '--catalog', 'mine', '--tz', 'UTC')).toContain(' 2026-11-14 23:00 ');
  expect(await run('keys', 'show', 'default/ci')).toMatch(
    /created +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d Europe\/Berlin/,
  );
});

it('rejects a zone that it does not know', async () => {
  const ran = await runHere(['usage', '--tz', 'Berlin', '--from', '2026-11-01'], {
    POSTERN_URL: gateway.url,
    POSTERN_ADMIN_TOKEN: ADMIN_TOKEN,
  });
  expect(ran).toMatchObject({
    code: 1,
    stderr: 'error: --tz must be an IANA time zone such as Europe/Berlin\n',
  });
});

it('has the instants of Postgres in every zone, also when clocks change', async () => {
  const zones = [
    'Europe/Berlin',
    'America/Santiago',
    'America/Havana',
    'Asia/Beirut',
    'Africa/Cairo',
    'Asia/Kathmandu',
  ];
  zones.push(
    'Australia/Lord_Howe',
    'America/St_Johns',
    'Pacific/Apia',
    'Pacific/Auckland',
    'America/Sao_Paulo',
    'UTC',
  );
  const start = Date.UTC(2008, 0, 1);
  for (const zone of zones) {
    const times = Array.from({ length: 500 }, () => new Date(start + randomInt(20 * 365 * 24 * 4) * 900_000));
    const days = Array.from({ length: 20 * 365 }, (_, i) => new Date(start + i * DAY_MS));
    const rows = await gateway.database.query<{ at: Date }>(
      'SELECT t AT TIME ZONE $2 AS at FROM unnest($1::text[]::timestamp[]) WITH ORDINALITY AS x(t, n) ORDER BY n',
      [[...times, ...days].map((time) => time.toISOString().slice(0, -1)), zone],
    );
    const found = [...times, ...days].map((time) => instantAt(time, zone).toISOString());
    expect([zone, found]).toEqual([zone, rows.map(({ at }) => at.toISOString())]);
    const truncated = await gateway.database.query<{ at: Date }>(
      "SELECT date_trunc('day', t, $2) AS at FROM unnest($1::timestamptz[]) WITH ORDINALITY AS x(t, n) ORDER BY n",
      [times, zone],
    );
    expect([zone, times.map((time) => startOfDay(time, zone).toISOString())]).toEqual([
      zone,
      truncated.map(({ at }) => at.toISOString()),
    ]);
  }
});
