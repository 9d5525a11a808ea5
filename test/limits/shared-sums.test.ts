import { DataSource } from 'typeorm';
import { moveToTimeZone } from '../../src/limit-rules/log-charges.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { answer } from '../support/raw-provider.js';
import { type Issued, JSON_TYPE, limitedForFile } from './limited-gateway.js';

const limited = limitedForFile();
const admin = <T>(method: string, path: string, body?: object) =>
  limited.postern.admin<T>(method, path, body);
let teams = 0;

async function ofNewTeam(members: object = {}): Promise<Issued> {
  const team = `sums-${++teams}`;
  await admin('POST', '/teams', { name: team });
  return limited.issue({ team, ...members });
}

const call = ({ key }: Issued, headers?: Record<string, string>, body: object = {}, path?: string) =>
  limited.send(key, { model: 'm', max_tokens: 100, ...body }, path, headers);

interface Limit {
  id: string;
  used: string;
  left: string;
  held: string;
  credited: string;
}

async function limits(query: string): Promise<Limit[]> {
  return (await admin<{ data: Limit[] }>('GET', `/limits?${query}`)).data;
}

async function rowsOf({ id }: Issued, count: number) {
  const read = () =>
    limited.postern.database.query<{ outcome: string; provider: string; model: string; filters: string[] }>(
      `SELECT outcome, provider, model, ARRAY(SELECT filter FROM limit_rule r WHERE r.nr = ANY (l.charge_rules) ORDER BY 1) AS filters
       FROM request_log l WHERE key_id = $1 ORDER BY started_at, id`,
      [id],
    );
  await eventually(async () => (await read()).length >= count);
  return read();
}

it.each([
  ['cached', { cache: { ttl_seconds: 600 } }, {}],
  ['replayed', { idempotency: 'replay' }, { 'idempotency-key': 'one' }],
])(
  '%s responses count in no budget, neither when they are sent nor in a new one',
  async (how, members, headers) => {
    const key = await ofNewTeam(members);
    let sent = 0;
    const send = async () => {
      expect((await call(key, headers)).status).toBe(200);
      return (await rowsOf(key, ++sent)).at(-1)!.outcome === how;
    };
    await eventually(send);
    await admin('PATCH', `/keys/${key.id}`, {
      budgets: [
        { usd: '5', period: 'month' },
        { tokens: 5_000_000, period: 'month' },
      ],
    });
    const paid = (await rowsOf(key, sent)).filter((row) => row.outcome === 'completed').length;
    const used = async () =>
      (await limits(`key=${key.id}`)).map((one) => Number(one.used)).sort((a, b) => a - b);
    const expected = [Number((paid * 0.0011).toFixed(4)), paid * 200];
    expect(await used()).toEqual(expected);
    await eventually(async () => {
      await send();
      const last = (await rowsOf(key, sent)).at(-1)!;
      return last.outcome === how;
    });
    expect(await used()).toEqual(expected);
  },
);

never('of two changes of the installation at once, and of a team, none is lost', async () => {
  const key = await ofNewTeam();
  for (const [path, given] of [
    ['/limits/installation', '/limits/installation'],
    [`/teams/${key.team_id}`, `/teams/${key.team_id}`],
  ] as const) {
    await Promise.all([
      admin('PATCH', path, { budgets: [{ usd: '500', period: 'day' }] }),
      admin('PATCH', path, { limits: { requests_per_minute: 6_000 } }),
      admin('PATCH', path, { filtered_limits: [{ models: ['x'], requests_per_minute: 5 }] }),
      admin('PATCH', path, { each_session: { budgets: [{ usd: '5', period: 'session' }] } }),
    ]);
    expect(await admin('GET', given)).toMatchObject({
      budgets: [{ usd: '500.00' }],
      limits: { requests_per_minute: 6_000 },
      filtered_limits: [{ models: ['x'] }],
      each_session: { budgets: [{ usd: '5.00' }] },
    });
  }
  await admin('PATCH', '/limits/installation', {
    budgets: null,
    limits: null,
    filtered_limits: null,
    each_session: null,
  });
});

it('a reset of a budget of a group gives it all back, and what was spent stays the sum of its rows', async () => {
  const key = await ofNewTeam();
  const name = `reset-${++teams}`;
  const group = await admin<{ id: string }>('POST', '/groups', {
    name,
    teams: [key.team_id],
    budgets: [{ usd: '0.0044', period: 'month', reservation: 'worst' }],
  });
  const spend = async () => {
    for (let sent = 0; sent < 8; sent++) if ((await call(key)).status === 402) return sent;
    throw new Error('it admits everything');
  };
  const first = await spend();
  expect(first).toBeGreaterThanOrEqual(2);
  await rowsOf(key, first);
  const shown = async () => (await limits(`key=${group.id}`))[0]!;
  await eventually(async () => (await shown()).used === `${(first * 0.0011).toFixed(4)}`);
  await admin('POST', `/limits/${(await shown()).id}/reset`, { reason: 'a test' });
  const { credited, left, held } = await shown();
  expect(Number(credited)).toBeCloseTo(first * 0.0011, 9);
  expect(Number(left) + Number(held)).toBeCloseTo(0.0044, 9);
  let second = 0;
  await eventually(async () => (second += await spend()) >= first);
  expect(second * 0.0011).toBeLessThanOrEqual(0.0044);
  await rowsOf(key, first + second);
  await eventually(async () => (await shown()).used === `${((first + second) * 0.0011).toFixed(4)}`);
});

it('another time zone keeps what was spent of budgets of groups and of sessions', async () => {
  const key = await ofNewTeam({ each_session: { budgets: [{ usd: '5', period: 'session' }] } });
  const group = await admin<{ id: string }>('POST', '/groups', {
    name: `zone-${++teams}`,
    teams: [key.team_id],
    budgets: [
      { usd: '5', period: 'month' },
      { usd: '5', period: 'total' },
    ],
    each_session: { budgets: [{ usd: '5', period: 'session' }] },
  });
  const session = { 'x-gateway-session': 'one' };
  for (let i = 0; i < 3; i++) expect((await call(key, session)).status).toBe(200);
  await rowsOf(key, 3);
  const dataSource = limited.postern.gateway.app.get(DataSource);
  const used = async () =>
    [...(await limits(`key=${group.id}`)), ...(await limits(`key=${key.id}`))].map((one) => one.used);
  for (const [i, zone] of ['Pacific/Kiritimati', 'UTC'].entries()) {
    await moveToTimeZone(dataSource, zone);
    expect(await used()).toEqual(Array(4).fill(`${((3 + i) * 0.0011).toFixed(4)}`));
    expect((await call(key, session)).status).toBe(200);
    await rowsOf(key, 4 + i);
    await eventually(async () => (await used()).every((one) => one === `${((4 + i) * 0.0011).toFixed(4)}`));
  }
});

it("a route's own names of models count, each row in the budgets of its provider and name", async () => {
  const { url } = limited.provider;
  for (const name of ['first', 'second'])
    await admin('POST', '/providers', { name, url, secret: 'sk-of-a-provider-0123456789' });
  await admin('POST', '/routes', {
    name: 'renaming',
    targets: [
      { provider: 'first', models: { asked: 'dear-1' } },
      { provider: 'second', models: { asked: 'cheap-1' } },
    ],
  });
  const { script } = limited.provider;
  limited.provider.script = async (request) => {
    const { bytes } = await request.body;
    if (!bytes.toString().includes('dear-1')) return script(request);
    request.socket.write(answer('429 Too Many Requests', JSON_TYPE, '{}'));
  };
  const key = await ofNewTeam({
    budgets: [
      { tokens: 1_000_000, period: 'day', models: ['asked'] },
      { tokens: 1_000_000, period: 'day', models: ['dear-*'] },
      { tokens: 1_000_000, period: 'day', models: ['cheap-*'], providers: ['second'] },
      { tokens: 1_000_000, period: 'day', models: ['cheap-*'], providers: ['first'] },
    ],
  });
  const reply = await call(key, {}, { model: 'asked' }, '/p/renaming/v1/chat/completions');
  expect(reply.status).toBe(200);
  const rows = await rowsOf(key, 2);
  // The IDs of attempts are in no order.
  const named = rows.map(({ provider, model, filters }) => [provider, model, filters]);
  expect(named.sort(([a], [b]) => String(a).localeCompare(String(b)))).toEqual([
    ['first', 'dear-1', ['model=dear-*']],
    ['second', 'cheap-1', ['provider=second model=cheap-*']],
  ]);
  // A name of a target that is spent rejects the call before it is sent.
  await admin('PATCH', `/keys/${key.id}`, { budgets: [{ tokens: 0, period: 'day', models: ['CHEAP-1'] }] });
  await eventually(
    async () =>
      (await call(key, {}, { model: 'asked' }, '/p/renaming/v1/chat/completions')).headers.get(
        'x-gateway-limit',
      ) === 'key tokens day model=CHEAP-1',
  );
});
