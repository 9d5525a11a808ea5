import { insertRow } from '../request-log/rows.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { runHere } from './run-here.js';

let gateway: TestGateway;
const ids = new Map<string, { id: string; team_id: string; prefix: string }>();

beforeAll(async () => {
  gateway = await startTestGateway();
  const call = (key: string, columns: object) => {
    const { id, team_id } = ids.get(key)!;
    return insertRow(gateway.database, new Date(), { key_id: id, team_id, ...columns });
  };
  for (const team of ['ads', 'search']) {
    await gateway.admin('POST', '/teams', { name: team });
    ids.set(team, await gateway.admin('POST', '/keys', { team, name: 'ci' }));
  }
  ids.set('prod', await gateway.admin('POST', '/keys', { team: 'search', name: 'prod' }));
  await call('ads', { prompt_tokens: 1_000_000, completion_tokens: 234_567 });
  await call('ads', { status: 429 });
  for (let i = 0; i < 3; i++) await call('search', { prompt_tokens: 10, completion_tokens: 5 });
  // Streams for which the provider reported no counts.
  for (let i = 0; i < 4; i++) await call('prod', { streamed: true });
});
afterAll(() => gateway.stop());

const usage = async (...args: string[]) => {
  const env = { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
  const { code, stdout, stderr } = await runHere(['usage', ...args], env);
  expect([code, stderr]).toEqual([0, '']);
  return stdout.split('\n').map((line) => line.split(/ +/).join(' '));
};

it('tells the keys of different teams apart, with their prefixes', async () => {
  const lines = await usage('--group-by', 'key', '--status', '429');
  expect(lines.slice(0, 3)).toEqual([
    expect.stringMatching(/^KEY PREFIX CALLS /),
    expect.stringMatching(new RegExp(`^ads/ci ${ids.get('ads')!.prefix} 1 1 `)),
    expect.stringMatching(/^TOTAL 1 1 /),
  ]);
  const all = await usage('--group-by', 'key');
  expect(
    all
      .filter((line) => /^\w+\//.test(line))
      .map((line) => line.split(' ')[0])
      .sort(),
  ).toEqual([...['ads/ci', 'search/ci', 'search/prod']]);
});

it('sorts by a sum, the largest first, with totals over all groups', async () => {
  const columns =
    'CALLS ERRORS TOKENS PROMPT COMPLETION COST $ NO COUNTS CACHED REASONING BYTES IN BYTES OUT';
  const total = 'TOTAL 9 1 1,234,612 1,000,030 234,582 - 4 0 0 90 180';
  expect((await usage('--group-by', 'team', '--sort', 'tokens', '--from', '1h')).slice(0, 4)).toEqual([
    `TEAM ${columns}`,
    'ads 2 1 1,234,567 1,000,000 234,567 - 0 0 0 20 40',
    'search 7 0 45 30 15 - 4 0 0 70 140',
    total,
  ]);
  const [, first, second] = await usage('--group-by', 'team', '--top', '1');
  expect(first).toMatch(/^search 7 /);
  expect(second).toBe(total);
  expect((await usage('--group-by', 'team', '--top', '1')).join('\n')).not.toContain('More results');
  expect((await usage('--group-by', 'team', '--limit', '1')).join('\n')).toContain(
    'More results: ./postern usage',
  );
});

it('says how many calls have no cost because their model has no price', async () => {
  const note = 'COST $ leaves out calls whose model has no price (4): ./postern prices missing';
  expect(await usage('--group-by', 'team')).toContain(note);
  expect((await usage('--key', ids.get('prod')!.id)).join('\n')).not.toContain('COST $ leaves out');
});

it.each(['0', '501', 'x', '1.5'])('rejects --top %s by its own name', async (top) => {
  const env = { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
  expect((await runHere(['usage', '--top', top], env)).stderr).toBe(
    'error: --top must be an integer from 1 to 500\n',
  );
});

it('shows calls without token counts, and no 0 for them', async () => {
  const lines = await usage('--group-by', 'key', '--sort', 'calls');
  const prod = lines.find((line) => line.startsWith('search/prod'))!;
  expect(prod).toBe(`search/prod ${ids.get('prod')!.prefix} 4 0 - - - - 4 - - 40 80`);
  expect(lines.join('\n')).toContain('NO COUNTS: calls without token counts from the provider.');
  const counted = await usage('--key', ids.get('search')!.id);
  expect(counted.join('\n')).not.toContain('NO COUNTS');
});
