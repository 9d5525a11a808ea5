import { v7 as uuidv7 } from 'uuid';
import { eventually, timePasses } from '../support/eventually.js';
import { Replicas } from '../support/replicas.js';
import { FULL } from '../support/scale.js';
import { type Issued, sendTo } from '../limits/limited-gateway.js';
import { USD } from '../limits/rules.js';

// Calls that count in eight budgets of the installation, a group, its teams, their keys and sessions, at four gateway
// processes as they are built.

const IN_FLIGHT = 12;
/** The trouble lasts so long, and until there was as much of it. */
const TROUBLE_MS = FULL ? 600_000 : 30_000;
const KILLS = 4;
const CALLS = 500;
const SESSIONS = 20;
/** A call costs a cent on average: some 20,000 calls. */
const SHARED = FULL ? 200n * USD : 20n * USD;

let replicas: Replicas;
beforeAll(async () => {
  replicas = await Replicas.start(4);
});
afterAll(() => replicas.stop());
beforeEach(() => {
  replicas.call = () => ({ output: Math.floor(Math.random() * 1_001), ms: 5 + Math.random() * 30 });
});

const say = (text: string) => void process.stdout.write(`${text}\n`);

/** Two keys in two teams of one group. */
async function ofOneGroup(members: object): Promise<{ group: string; keys: Issued[] }> {
  const keys: Issued[] = [];
  for (const name of [`a-${uuidv7()}`, `b-${uuidv7()}`]) {
    await replicas.admin('POST', '/teams', { name, budgets: [{ usd: '100000', period: 'week' }] });
    keys.push(await replicas.admin('POST', '/keys', { team: name, name: 'agent', ...members }));
  }
  const teams = keys.map(({ team_id }) => team_id);
  const { id } = await replicas.admin<{ id: string }>('POST', '/groups', { name: `g-${uuidv7()}`, teams });
  return { group: id, keys };
}

async function addGroupBudget(group: string, columns: Record<string, unknown>): Promise<void> {
  const rule: Record<string, unknown> = {
    ...{
      id: uuidv7(),
      scope: 'group',
      scope_id: uuidv7(),
      owner_id: group,
      rank: 1,
      resource: 'usd',
      period: 'day',
    },
    ...columns,
  };
  const names = Object.keys(rule);
  await replicas.database.query(
    `INSERT INTO limit_rule (${names.join(', ')}) VALUES (${names.map((_, i) => `$${i + 1}`).join(', ')})`,
    Object.values(rule),
  );
}

interface Book {
  rule: string;
  subject: string;
  spent: string;
  charged: string;
}

/** What each meter says was spent, and the charges of the rows that name its rule, for its session. */
function books(): Promise<Book[]> {
  return replicas.database.query<Book>(`
    WITH spent AS (
      SELECT rule_id, subject, sum(spent) AS spent FROM (
        SELECT rule_id, subject, spent FROM limit_meter UNION ALL SELECT rule_id, subject, spent FROM limit_spent) parts
      GROUP BY 1, 2),
    charged AS (
      SELECT r.id AS rule_id, CASE WHEN r.scope LIKE '%session' THEN l.limit_session ELSE '' END AS subject,
             sum(CASE r.resource WHEN 'usd' THEN l.charge_usd * 1000000000 ELSE l.charge_tokens END) AS charged
      FROM request_log l JOIN limit_rule r ON r.nr = ANY (l.charge_rules) GROUP BY 1, 2)
    SELECT r.scope || ' ' || r.resource || ' ' || r.period || ' ' || r.filter AS rule, subject,
           COALESCE(spent, 0)::bigint::text AS spent, COALESCE(charged, 0)::bigint::text AS charged
    FROM spent FULL JOIN charged USING (rule_id, subject) JOIN limit_rule r ON r.id = rule_id
    WHERE r.period NOT IN ('minute', 'at_once') ORDER BY 1, 2`);
}

/** Waits until every hold is returned and every row is written. */
async function settled(): Promise<Book[]> {
  await eventually(async () => {
    const [row] = await replicas.database.query<{ open: number }>(
      'SELECT count(*)::int AS open FROM limit_meter WHERE held <> 0',
    );
    return row!.open === 0;
  });
  return books();
}

it(
  'never exceeds a budget of a group whose two teams call four replicas, and spends nearly all of it',
  async () => {
    const { group, keys } = await ofOneGroup({});
    await addGroupBudget(group, { amount: String(SHARED), reservation: 'worst' });
    const untilSpent = (code: string | null) => code !== 'insufficient_quota';
    const outcomes = await Promise.all(keys.map(({ key }) => replicas.load(key, IN_FLIGHT, untilSpent)));
    for (const { rejected, broken } of outcomes) {
      // Where Postgres is too busy, an exchange may take too long.
      rejected.delete('limits_unavailable');
      expect([...rejected.keys()]).toEqual(['insufficient_quota']);
      expect(broken).toBe(0);
    }
    const { spent, charged } = (await settled()).find(({ rule }) => rule === 'group usd day ')!;
    say(
      `group: ${outcomes.reduce((sum, { forwarded }) => sum + forwarded, 0)} calls, ${Number(spent) / 1e9} of ${SHARED / USD} USD`,
    );
    expect(spent).toBe(charged);
    expect(BigInt(spent)).toBeLessThanOrEqual(SHARED);
    expect(BigInt(spent)).toBeGreaterThan((SHARED / 20n) * 19n);
  },
  TROUBLE_MS + 240_000,
);

it(
  'has in each of eight budgets what its rows were charged, while replicas are killed at random',
  async () => {
    // The calls of the test before name no rule of this one.
    const much = { usd: '100000', period: 'month', count_from: 'now' };
    await replicas.admin('PATCH', '/limits/installation', {
      budgets: [much, { ...much, period: 'day', providers: ['default'] }],
    });
    const { group, keys } = await ofOneGroup({
      budgets: [much, { tokens: 1_000_000_000, period: 'day', models: ['m*'] }],
      each_session: { budgets: [{ usd: '100000', period: 'session' }] },
    });
    await addGroupBudget(group, { amount: String(100_000n * USD) });
    await addGroupBudget(group, { amount: '1000000000', resource: 'tokens', period: 'total' });

    const counts = { forwarded: 0, broken: 0, rejected: new Map<string, number>() };
    const until = performance.now() + TROUBLE_MS;
    let kills = 0;
    const goesOn = () => performance.now() < until || kills < KILLS || counts.forwarded < CALLS;
    const caller = async (key: string) => {
      while (goesOn()) {
        const { url } = replicas.all[Math.floor(Math.random() * replicas.all.length)]!;
        const session = { 'x-gateway-session': `run ${Math.floor(Math.random() * SESSIONS)}` };
        const body = { model: 'm', max_tokens: 1_000 };
        const reply = await sendTo(url, key, body, '/v1/chat/completions', session).catch(() => null);
        if (reply === null) counts.broken++;
        else if (reply.status === 200) counts.forwarded++;
        else counts.rejected.set(reply.code!, (counts.rejected.get(reply.code!) ?? 0) + 1);
        if (reply?.status !== 200) await timePasses(100, 'the pace of a client after an error');
      }
    };
    const killer = async () => {
      for (; goesOn(); kills++) {
        await timePasses(2_000 + Math.random() * 3_000, 'until the next replica dies');
        // The last one serves the admin API.
        const index = Math.floor(Math.random() * 3);
        await replicas.kill(index);
        await replicas.startAgain(index);
      }
    };
    const callers = keys.flatMap(({ key }) => Array.from({ length: 2 * IN_FLIGHT }, () => caller(key)));
    await Promise.all([...callers, killer()]);
    const all = await settled();
    say(
      `tree: ${counts.forwarded} calls, ${counts.broken} broken, ${kills} kills, ${all.length} meters, ` +
        `rejected ${JSON.stringify([...counts.rejected])}`,
    );
    expect(new Set(all.map(({ rule }) => rule)).size).toBeGreaterThanOrEqual(8);
    expect(all.filter(({ spent, charged }) => spent !== charged)).toEqual([]);
    const [named] = await replicas.database.query<{ least: number }>(
      `SELECT min(cardinality(charge_rules)) AS least FROM request_log WHERE key_id = ANY ($1)`,
      [keys.map(({ id }) => id)],
    );
    expect(named!.least).toBe(8);
  },
  TROUBLE_MS + 240_000,
);
