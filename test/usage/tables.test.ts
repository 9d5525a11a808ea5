import { insertRow } from '../request-log/rows.js';
import { runHere } from '../cli/run-here.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';

let gateway: TestGateway;
const team = { id: '', key: '' };

/** October in Berlin begins at 22:00 UTC on the last day of September, and ends at 23:00 UTC. */
const FIRST = new Date('2026-09-30T22:00:00Z');
const LAST = new Date('2026-10-31T22:59:59.999Z');
const OCTOBER = 'from=2026-09-30T22:00:00Z&to=2026-10-31T23:00:00Z';

beforeAll(async () => {
  gateway = await startTestGateway({ REPORT_TIMEZONE: 'Europe/Berlin', REQUEST_LOG_RETENTION_DAYS: '3650' });
  const made = await gateway.admin<{ id: string }>('POST', '/teams', {
    name: 'search, "EU"',
    cost_center: '=CC-1',
    contact: '#search',
    owner: '@ann',
  });
  const key = await gateway.admin<{ id: string }>('POST', '/keys', { team: made.id, name: 'ci' });
  Object.assign(team, { id: made.id, key: key.id });
  const call = (at: Date, columns: object) =>
    insertRow(gateway.database, at, { team_id: team.id, key_id: team.key, provider: 'openai', ...columns });
  await call(FIRST, {
    ...{ prompt_tokens: 100, cached_tokens: 30, cache_write_tokens: 20, completion_tokens: 7 },
    ...{ cost_usd: '0.000000001', model: 'gpt-5.6', duration_ms: 100 },
  });
  await call(LAST, { prompt_tokens: 1, completion_tokens: 1, model: 'unpriced' });
  await call(FIRST, {
    ...{ model: 'gpt-5.6', outcome: 'client_aborted', status: 200, usage_final: false, duration_ms: 100 },
    ...{ method: 'POST', prompt_tokens: 0, cost_low_usd: '0.25', cost_high_usd: '0.5' },
  });
  // The months before and after.
  await call(new Date(FIRST.getTime() - 1), { cost_usd: '5', prompt_tokens: 1 });
  await call(new Date(LAST.getTime() + 1), { cost_usd: '5', prompt_tokens: 1 });
});
afterAll(() => gateway.stop());

async function get(path: string): Promise<Response> {
  return fetch(`${gateway.url}/admin/v1/usage/${path}`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
}

async function read(path: string): Promise<{ name: string; text: string; type: string }> {
  const response = await get(path);
  expect(response.status).toBe(200);
  const [, name = ''] = /filename="(.*)"$/.exec(response.headers.get('content-disposition') ?? '') ?? [];
  return { name, text: await response.text(), type: response.headers.get('content-type')! };
}

const FIGURES =
  'cost_usd,unknown_calls,unknown_low_usd,unknown_high_usd,unbounded_calls,saved_usd,calls,errors,unpriced_calls,calls_without_tokens,uncached_input_tokens,cached_input_tokens,' +
  'cache_write_tokens,output_tokens,reasoning_tokens,total_tokens,p50_ms,p95_ms';
const RANGE = 'Europe/Berlin,2026-09-30T22:00:00.000Z,2026-10-31T23:00:00.000Z';

never(
  'is a table of a month in the time zone of reports, byte for byte, with what its costs leave out',
  async () => {
    const { name, text, type } = await read(`export?group_by=key,model&${OCTOBER}`);
    expect(type).toBe('text/csv; charset=utf-8; header=present');
    expect(name).toBe('postern-usage-2026-10-01-to-2026-10-31-key-model.csv');
    const owner = `"search, ""EU""",ci,${team.key}`;
    const [head, first, second, ...rest] = text.split('\n');
    expect(head).toBe(`time_zone,from,to,month,team,key,key_id,model,${FIGURES}`);
    expect(first).toBe(
      `${RANGE},2026-10,${owner},gpt-5.6,0.000000001,1,0.250000000,0.500000000,0,,2,0,0,0,50,30,20,7,0,107,175,243`,
    );
    expect(second).toBe(`${RANGE},2026-10,${owner},unpriced,,0,,,0,,1,0,1,0,1,0,0,1,0,2,,`);
    expect(rest).toEqual(['']);
  },
);

it('has different names for different ranges, by the days of the zone that was asked for', async () => {
  const nameOf = async (query: string) => (await read(`export?group_by=team&${query}`)).name;
  expect(await nameOf(`${OCTOBER}&tz=UTC`)).toBe(
    'postern-usage-2026-09-30T220000-to-2026-10-31T230000-team.csv',
  );
  expect(await nameOf('from=2026-09-30T22:00:00Z&to=2026-10-30T23:00:00Z')).toBe(
    'postern-usage-2026-10-01-to-2026-10-30-team.csv',
  );
  expect(await nameOf('to=2026-10-30T23:00:00Z')).toBe('postern-usage-start-to-2026-10-30-team.csv');
});

it('has the period of each row where there is one, the newest first', async () => {
  const { text } = await read(`export?group_by=month,team&from=2026-08-31T22:00:00Z`);
  const [head, ...lines] = text.trimEnd().split('\n');
  expect(head).toMatch(/^time_zone,from,to,month,team,team_id,cost_usd,/);
  expect(lines.map((line) => line.split(',')[3])).toEqual(['2026-11', '2026-10', '2026-09']);
});

it('is what the command prints, which leaves no group out', async () => {
  const { text } = await read(`export?group_by=key,model&${OCTOBER}`);
  const env = { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
  const args = ['--group-by', 'key,model', '--from', '2026-10-01', '--to', '2026-11-01', '--format', 'csv'];
  const { stdout, code } = await runHere(['usage', ...args], env);
  expect([code, stdout]).toEqual([0, text]);
  const errorOf = async (...given: string[]) => (await runHere(['usage', ...given], env)).stderr;
  expect(await errorOf('--top', '3', '--format', 'csv')).toContain('--format csv has all groups');
  expect(await errorOf('--format', 'xls')).toContain('--format must be table, json or csv');
});

describe('a statement', () => {
  never('has the calls of the month in the time zone, exactly, and what the sum leaves out', async () => {
    const { text } = await read(`statement?team=${team.id}&month=2026-10`);
    expect(JSON.parse(text)).toMatchObject({
      ...{
        month: '2026-10',
        time_zone: 'Europe/Berlin',
        is_over: true,
        team: 'search, "EU"',
        team_id: team.id,
      },
      ...{ from: '2026-09-30T22:00:00.000Z', to: '2026-10-31T23:00:00.000Z' },
      ...{ owner: '@ann', cost_center: '=CC-1', contact: '#search' },
      lines: [
        { key: 'ci', provider: 'openai', model: 'gpt-5.6', cost_usd: '0.000000001', unknown_calls: 1 },
        { key: 'ci', provider: 'openai', model: 'unpriced', cost_usd: null, unpriced_calls: 1 },
      ],
      totals: {
        calls: 3,
        cost_usd: '0.000000001',
        unpriced_calls: 1,
        unknown_calls: 1,
        unknown_low_usd: '0.250000000',
      },
    });
  });

  never('is a table too, whose cells no spreadsheet runs', async () => {
    const { name, text } = await read(`statement?team=${team.id}&month=2026-10&format=csv`);
    expect(name).toBe('postern-usage-2026-10-01-to-2026-10-31-statement-search_EU_.csv');
    const [head, first] = text.split('\n');
    expect(head).toBe(
      `owner,cost_center,contact,group,time_zone,from,to,month,team,team_id,key,key_id,provider,model,${FIGURES}`,
    );
    const place = `${RANGE},2026-10,"search, ""EU""",${team.id},ci,${team.key},openai,gpt-5.6,`;
    expect(first?.slice(0, place.length + 22)).toBe(`'@ann,'=CC-1,#search,,${place}`);
  });

  it('is what the command shows', async () => {
    const env = { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
    const of = async (...args: string[]) => {
      const all = ['usage', 'statement', '--team', team.id, '--month', '2026-10', ...args];
      const { code, stdout } = await runHere(all, env);
      expect(code).toBe(0);
      return stdout;
    };
    const { text } = await read(`statement?team=${team.id}&month=2026-10&format=csv`);
    expect(await of('--format', 'csv')).toBe(text);
    const shown = await of();
    expect(shown).toMatch(/^search, "EU", 2026-10 \(Europe\/Berlin\), owner @ann, cost center =CC-1\n/);
    expect(shown).toMatch(/\nTOTAL +.* 3 /);
    expect(shown).toContain('\ncost 0.000000001 · unknown calls 1 · between 0.250 and 0.500 more\n');
    expect(shown).toMatch(/ 0\.250 to 0\.500 /);
    expect((JSON.parse(await of('--json')) as { totals: object }).totals).toMatchObject({ calls: 3 });
  });

  it.each([
    ['month=2026-13', 400],
    ['month=2026-10&format=xls', 400],
    ['month=2026-10&team=nobody', 404],
  ])('rejects %s', async (query, status) => {
    const path = query.includes('team=') ? query : `team=${team.id}&${query}`;
    expect((await get(`statement?${path}`)).status).toBe(status);
  });
});
