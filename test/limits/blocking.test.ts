import { runHere } from '../cli/run-here.js';
import { ADMIN_TOKEN, startTestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { limitedForFile, sendTo } from './limited-gateway.js';

const limited = limitedForFile();

interface Shown {
  id: string;
  state: string;
  refused: number;
  last_needed: string | null;
  last_rejected_at: string | null;
}

const limitsOf = async (id: string) =>
  (await limited.postern.admin<{ data: Shown[] }>('GET', `/limits?key=${id}`)).data;
const isIn = (id: string, state: string) =>
  eventually(async () => (await limitsOf(id)).every((limit) => limit.state === state));
/** A call that reserves about so many cents: a cent is 1,000 output tokens. */
const call = (key: string, cents: number) => limited.send(key, { model: 'm', max_tokens: cents * 1_000 });
const cli = async (...args: string[]) => {
  const env = { POSTERN_URL: limited.postern.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
  return (await runHere(['limits', 'list', ...args], env)).stdout;
};

it('says of a budget that has rejected every call that it blocks, and what the last one needed', async () => {
  const { id, key } = await limited.issue({ budgets: [{ usd: '0.01', period: 'month' }] });
  expect(await limitsOf(id)).toMatchObject([{ state: 'ok', last_rejected_at: null, last_needed: null }]);
  const before = Date.now();
  expect((await call(key, 5)).status).toBe(402);
  await isIn(id, 'blocking');
  const [shown] = await limitsOf(id);
  expect(shown).toMatchObject({
    used: '0.00',
    refused: 1,
    last_needed: expect.stringMatching(/^0\.0[45]/) as string,
  });
  expect(Date.parse(shown!.last_rejected_at!)).toBeGreaterThan(before - 1_000);
  const { data } = await limited.postern.admin<{ data: Shown[] }>('GET', '/limits?state=blocking');
  expect(data.map((limit) => limit.id)).toEqual([shown!.id]);
  expect(await cli('--state', 'blocking')).toMatch(/ blocking /);
  expect(await cli('--state', 'exhausted')).toBe('No limits found.\n');
  const own = await fetch(`${limited.postern.url}/self/v1/key`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(await own.json()).toMatchObject({
    limits: [{ state: 'blocking', last_needed: shown!.last_needed }],
  });
});

it.each<[string, (budget: Shown, key: string) => Promise<unknown>]>([
  [
    'it is raised',
    (_, key) => limited.postern.admin('PATCH', `/keys/${key}`, { budgets: [{ usd: '1', period: 'month' }] }),
  ],
  ['it is reset', ({ id }) => limited.postern.admin('POST', `/limits/${id}/reset`, { reason: 'a test' })],
])('ends when %s', async (_, end) => {
  const { id, key } = await limited.issue({ budgets: [{ usd: '0.01', period: 'month' }] });
  expect((await call(key, 5)).status).toBe(402);
  await isIn(id, 'blocking');
  await end((await limitsOf(id))[0]!, id);
  await isIn(id, 'ok');
});

it('stays where a raise is too little, and ends with a call that is admitted, also by another replica', async () => {
  const { id, key } = await limited.issue({
    budgets: [{ usd: '0.01', period: 'month', reservation: 'worst' }],
  });
  expect((await call(key, 9)).status).toBe(402);
  await isIn(id, 'blocking');
  await limited.postern.admin('PATCH', `/keys/${id}`, {
    budgets: [{ usd: '0.05', period: 'month', reservation: 'worst' }],
  });
  expect(await limitsOf(id)).toMatchObject([{ state: 'blocking' }]);
  const other = await startTestGateway({ PROVIDER_URL: limited.provider.url }, limited.postern.database);
  try {
    expect((await sendTo(other.url, key, { model: 'm', max_tokens: 1_000 })).status).toBe(200);
    await isIn(id, 'ok');
    // The next call that is rejected blocks again.
    expect((await call(key, 9)).status).toBe(402);
    await isIn(id, 'blocking');
  } finally {
    await other.stop();
  }
});

it('does not end with calls that began before', async () => {
  const { id, key } = await limited.issue({ budgets: [{ usd: '0.05', period: 'month' }] });
  let end = () => {};
  const held = new Promise<void>((resolve) => (end = resolve));
  const { script } = limited.provider;
  limited.provider.script = async (request) => {
    await held;
    return script(request);
  };
  const received = limited.provider.requests.length;
  const first = call(key, 2);
  await eventually(() => limited.provider.requests.length > received);
  expect((await call(key, 9)).status).toBe(402);
  await isIn(id, 'blocking');
  end();
  expect((await first).status).toBe(200);
  await eventually(async () =>
    (await limitsOf(id)).every((limit) => (limit as { used?: string }).used !== '0.00'),
  );
  expect(await limitsOf(id)).toMatchObject([{ state: 'blocking' }]);
});

it('says so of a limit per minute', async () => {
  const { id, key } = await limited.issue({ limits: { requests_per_minute: 1 } });
  expect([(await call(key, 1)).status, (await call(key, 1)).status]).toEqual([200, 429]);
  await isIn(id, 'blocking');
  expect(await limitsOf(id)).toMatchObject([{ refused: 1, last_needed: '1' }]);
  // Once it is free again, whoever asks later.
  await limited.postern.database.query(
    `UPDATE limit_meter SET refused_at = refused_at - interval '70 seconds' WHERE rule_id = $1`,
    [(await limitsOf(id))[0]!.id],
  );
  expect((await limitsOf(id))[0]!.state).not.toBe('blocking');
});

never('never says so of a budget that only warns', async () => {
  const { id, key } = await limited.issue({ budgets: [{ usd: '0.01', period: 'month', mode: 'warn' }] });
  expect((await call(key, 5)).status).toBe(200);
  expect(await limitsOf(id)).toMatchObject([{ refused: 0, last_rejected_at: null }]);
});
