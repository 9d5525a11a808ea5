import pg from 'pg';
import { DataSource } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { LimitRules } from '../../src/limit-rules/limit-rules.service.js';
import { LedgerService } from '../../src/limits/ledger/ledger.service.js';
import { NO_LIMITS } from '../../src/limit-rules/stored-rules.js';
import { changesApplied } from '../support/changes-applied.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { type Issued, JSON_TYPE, limitedForFile, type Reply, usageResponse } from './limited-gateway.js';
import { never } from '../support/never.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { setPatience } from '../support/patience.js';
import { FULL } from '../support/scale.js';

setPatience(20);
const limited = limitedForFile();
const admin = <T>(method: string, path: string, body?: object) =>
  limited.postern.admin<T>(method, path, body);
const NOTHING = {
  limits: null,
  filtered_limits: null,
  budgets: null,
  each_end_user: null,
  each_session: null,
};
const installation = (members: object) => admin('PATCH', '/limits/installation', members);
afterEach(async () => {
  await installation(NOTHING);
});

const IN_FLIGHT = FULL ? 1_000 : 100;
/** The provider says that each call has used 100 + 100 tokens: 0.0011 USD. */
const COST = 0.0011;
let teams = 0;

async function ofNewTeam(members: object = {}): Promise<Issued> {
  const team = `shared-${++teams}`;
  await admin('POST', '/teams', { name: team });
  return limited.issue({ team, ...members });
}

const call = ({ key }: Issued, body: object = { model: 'm' }, headers?: Record<string, string>) =>
  limited.send(key, { max_tokens: 100, ...body }, '/v1/chat/completions', headers);

/** Sends calls one after the other until one is rejected. */
async function untilRejected(
  send: () => Promise<Reply>,
  most: number,
): Promise<{ admitted: number; last: Reply }> {
  for (let admitted = 0; ; admitted++) {
    const last = await send();
    if (last.status !== 200) return { admitted, last };
    if (admitted === most) throw new Error(`${most} calls were admitted`);
  }
}

interface Charged {
  id: string;
  named: number;
  charges: string;
  spent: string;
}

/** What is spent of each budget, and the charges of the rows that name it. */
function rulesAndRows(): Promise<Charged[]> {
  return limited.postern.database.query<Charged>(`
    SELECT r.id, count(l.id)::int AS named, COALESCE(sum(CASE r.resource WHEN 'usd' THEN l.charge_usd * 1000000000 ELSE l.charge_tokens END), 0)::bigint::text AS charges,
           (COALESCE((SELECT sum(spent) FROM limit_meter m WHERE m.rule_id = r.id), 0)
            + COALESCE((SELECT sum(spent) FROM limit_spent s WHERE s.rule_id = r.id), 0))::text AS spent
    FROM limit_rule r LEFT JOIN request_log l ON r.nr = ANY (l.charge_rules)
    WHERE r.period NOT IN ('minute', 'at_once')
    GROUP BY r.id, r.resource ORDER BY r.id`);
}

async function rowsOf(
  keyId: string,
  count: number,
): Promise<{ charge_rules: string[] | null; model: string | null }[]> {
  let rows: { charge_rules: string[] | null; model: string | null }[] = [];
  await eventually(async () => {
    rows = await limited.postern.database.query(
      'SELECT charge_rules, model FROM request_log WHERE key_id = $1',
      [keyId],
    );
    return rows.length >= count;
  });
  return rows;
}

async function expectExact(): Promise<void> {
  await eventually(async () => {
    const rules = await rulesAndRows();
    return rules.every(({ charges, spent }) => charges === spent);
  });
  for (const { charges, spent } of await rulesAndRows()) expect(spent).toBe(charges);
}

describe('a budget of the installation', () => {
  it('is shared by all teams, says no amounts to the holder of a key, and is the sum of the rows that name it', async () => {
    const [a, b] = [await ofNewTeam(), await ofNewTeam()];
    await installation({ budgets: [{ usd: '0.0110', period: 'total' }] });
    let sent = 0;
    const { admitted, last } = await untilRejected(() => call(sent++ % 2 === 0 ? a : b), 12);
    // Half of the 10 at least: what a call has cost counts twice, as held too, until its process has told Postgres.
    expect(admitted).toBeGreaterThanOrEqual(5);
    expect(admitted * COST).toBeLessThanOrEqual(0.011 + 1e-9);
    expect([last.status, last.code]).toEqual([402, 'insufficient_quota']);
    expect(last.error.message).toMatch(
      /^The total budget of this gateway (is spent|does not cover this request)\. It does not reset by itself\.$/,
    );
    expect(last.headers.get('x-gateway-limit')).toBe('installation usd total');
    expect(last.headers.get('x-should-retry')).toBe('false');
    await rowsOf(a.id, Math.ceil(admitted / 2));
    await rowsOf(b.id, Math.floor(admitted / 2));
    await expectExact();
    const [rule] = await rulesAndRows();
    expect(rule!.named).toBe(admitted);
  });

  never('that only warns charges every call and rejects none', async () => {
    const key = await ofNewTeam();
    await installation({ budgets: [{ usd: '0.0001', period: 'day', mode: 'warn', count_from: 'now' }] });
    for (let i = 0; i < 5; i++) expect((await call(key)).status).toBe(200);
    const rows = await rowsOf(key.id, 5);
    expect(rows.map(({ charge_rules }) => charge_rules?.length)).toEqual([1, 1, 1, 1, 1]);
    await expectExact();
  });

  it('charges a model in whatever case its name is written, and forwards the name as it is', async () => {
    const key = await ofNewTeam();
    await installation({ budgets: [{ usd: '0.0025', period: 'total' }] });
    const bodies: string[] = [];
    const { script } = limited.provider;
    limited.provider.script = async (request) => {
      bodies.push(String((await request.body).bytes));
      return script(request);
    };
    const { admitted, last } = await untilRejected(() => call(key, { model: 'M' }), 5);
    expect(admitted).toBeLessThanOrEqual(2);
    expect([last.status, last.code]).toEqual([402, 'insufficient_quota']);
    expect(bodies[0]).toContain('"model":"M"');
    const rows = await rowsOf(key.id, admitted);
    expect(rows.map(({ model }) => model)).toEqual(rows.map(() => 'M'));
    await expectExact();
    const [rule] = await rulesAndRows();
    expect(Number(rule!.charges)).toBe(admitted * COST * 1e9);
  });

  it('forwards models without a price unless it is told to reject them', async () => {
    const key = await ofNewTeam();
    await installation({ budgets: [{ usd: '1', period: 'total' }] });
    expect((await call(key, { model: 'unknown' })).status).toBe(200);
    await installation({ budgets: [{ usd: '1', period: 'total', unpriced: 'reject' }] });
    await eventually(async () => (await call(key, { model: 'unknown' })).code === 'model_not_priced');
  });
});

describe('a budget of a group', () => {
  /** As the admin API makes it. */
  async function group(teamsOf: readonly Issued[], rule: { usd: string; period: string }): Promise<string> {
    const { id } = await admin<{ id: string }>('POST', '/groups', {
      name: `dev-${++teams}`,
      teams: teamsOf.map(({ team_id }) => team_id),
    });
    const { postern } = limited;
    const rules = postern.gateway.app.get(LimitRules);
    await postern.gateway.app.get(DataSource).transaction((manager) =>
      rules.save(manager, 'group', id, {
        ...NO_LIMITS,
        budgets: [{ ...rule, mode: 'block', alert_at: [], unpriced: 'allow', reservation: 'worst' } as never],
      }),
    );
    return id;
  }

  it('is shared by its teams alone, and names the group, without its money', async () => {
    const [a, b, outside] = [await ofNewTeam(), await ofNewTeam(), await ofNewTeam()];
    const id = await group([a, b], { usd: '0.011', period: 'day' });
    const { name } = await admin<{ name: string }>('GET', `/groups/${id}`);
    let sent = 0;
    const { admitted, last } = await untilRejected(() => call(sent++ % 2 === 0 ? a : b), 12);
    expect(admitted * COST).toBeLessThanOrEqual(0.011 + 1e-9);
    expect(last.headers.get('x-gateway-limit')).toBe(`group/${name} usd day`);
    expect(last.error.message).toMatch(
      new RegExp(`^The daily budget of the group ${name} (is spent|does not cover)`),
    );
    expect(last.error.message).not.toMatch(/\$/);
    expect((await call(outside)).status).toBe(200);
    await rowsOf(a.id, Math.ceil(admitted / 2));
    await rowsOf(b.id, Math.floor(admitted / 2));
    await expectExact();
  });

  it('stays equal to its rows while a team moves to another with calls in flight, and no longer counts that team', async () => {
    const key = await ofNewTeam();
    const ids = [
      await group([key], { usd: '100', period: 'total' }),
      await group([], { usd: '100', period: 'total' }),
    ];
    const { script, requests } = limited.provider;
    let release = () => {};
    const moved = new Promise<void>((resolve) => (release = resolve));
    limited.provider.script = async (request) => {
      await moved;
      return script(request);
    };
    const before = requests.length;
    const calls = Array.from({ length: IN_FLIGHT }, () => call(key));
    try {
      // The others are on their way.
      await eventually(() => requests.length - before >= IN_FLIGHT / 2);
      await admin('PATCH', `/groups/${ids[1]!}`, { teams: [key.team_id] });
      await changesApplied(limited.postern, 'limits');
      calls.push(call(key));
    } finally {
      release();
    }
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    const rows = await rowsOf(key.id, calls.length);
    // Each row names one of the two.
    expect(rows.filter(({ charge_rules: rules }) => rules?.length !== 1)).toEqual([]);
    await expectExact();
    const charged = await limited.postern.database.query<{ named: number }>(
      `SELECT count(l.id)::int AS named FROM limit_rule r JOIN request_log l ON r.nr = ANY (l.charge_rules)
       WHERE r.owner_id = ANY ($1) GROUP BY r.id`,
      [ids],
    );
    expect(charged).toHaveLength(2);
    expect(charged.reduce((sum, { named }) => sum + named, 0)).toBe(calls.length);
  });

  it('keeps what calls in flight hold when it is renamed, and has its new name in the header, whatever characters that has', async () => {
    const key = await ofNewTeam();
    const { id } = await admin<{ id: string }>('POST', '/groups', {
      ...{ name: `dev-${++teams}`, teams: [key.team_id], limits: { concurrent_requests: 3 } },
    });
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const { script } = limited.provider;
    limited.provider.script = async (request) => {
      await held;
      return script(request);
    };
    const before = limited.provider.requests.length;
    const calls = [call(key), call(key), call(key)];
    try {
      await eventually(() => limited.provider.requests.length - before === 3);
      // One that is admitted by mistake ends.
      limited.provider.script = script;
      const name = `研究 $& ${++teams}`;
      await admin('PATCH', `/groups/${id}`, { name });
      const header = `group/${encodeURIComponent(name)} concurrent_requests at_once`;
      await eventually(async () => {
        const { status, headers, error } = await call(key);
        expect(status).toBe(429);
        if (headers.get('x-gateway-limit') !== header) return false;
        expect(error.message).toContain(`of the group ${name} is reached`);
        return true;
      });
    } finally {
      release();
    }
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  it('that is removed with calls in flight leaves no rules, and its calls are charged to their keys', async () => {
    const key = await ofNewTeam();
    const name = `removed-${++teams}`;
    await admin('POST', '/groups', {
      name,
      teams: [key.team_id],
      budgets: [{ usd: '5', period: 'month' }],
      each_session: { budgets: [{ usd: '5', period: 'session' }] },
    });
    await admin('PATCH', `/keys/${key.id}`, { budgets: [{ usd: '5', period: 'total' }] });
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    limited.provider.script = async ({ body, socket }) => {
      await body.catch(() => {});
      await held;
      socket.write(answer('200 OK', JSON_TYPE, usageResponse(limited.use)));
    };
    const before = limited.provider.requests.length;
    const headers = { 'x-gateway-session': 'one' };
    const send = () => limited.send(key.key, { model: 'm', max_tokens: 100 }, undefined, headers);
    const calls = [send(), send(), send()];
    await eventually(() => limited.provider.requests.length - before === 3);
    await admin('PATCH', `/groups/${name}`, { teams: [] });
    const removed = await fetch(`${limited.postern.url}/admin/v1/groups/${name}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    expect(removed.status).toBe(204);
    release();
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200]);
    const { database } = limited.postern;
    expect(
      await database.query(
        `SELECT FROM limit_rule WHERE scope ~ '^group' AND owner_id NOT IN (SELECT id FROM team_group)`,
      ),
    ).toEqual([]);
    const used = async () => {
      const { data } = await admin<{ data: { used: string }[] }>('GET', `/limits?key=${key.id}`);
      return data.map((limit) => limit.used);
    };
    await eventually(async () => (await used())[0] === '0.0033');
  });
});

describe('a limit for some models', () => {
  never('counts only calls whose model matches, with stars anywhere and in any case', async () => {
    const key = await ofNewTeam({
      budgets: [{ tokens: 1_000, period: 'day', models: ['a*z', 'exact'] }],
      filtered_limits: [{ models: ['rare-*'], requests_per_minute: 1 }],
    });
    for (const model of ['a-z', 'abcz', 'A-z', 'az-1', 'exact', 'Exact', 'm']) {
      expect([model, (await call(key, { model })).status]).toEqual([model, 200]);
    }
    const rows = await rowsOf(key.id, 7);
    const counted = rows.filter(({ charge_rules }) => charge_rules !== null && charge_rules.length > 0);
    expect(counted.map(({ model }) => model).sort()).toEqual(['A-z', 'Exact', 'a-z', 'abcz', 'exact']);
    await expectExact();
    expect((await call(key, { model: 'rare-1' })).status).toBe(200);
    const second = await call(key, { model: 'rare-2' });
    expect([second.status, second.headers.get('x-gateway-limit')]).toEqual([
      429,
      'key requests minute model=rare-*',
    ]);
    expect(second.error.message).toContain('this gateway key for rare-*');
    expect((await call(key, { model: 'm' })).status).toBe(200);
  });

  never('takes no call whose model is not certain, so that nobody names another one', async () => {
    const key = await ofNewTeam({ budgets: [{ tokens: 10_000, period: 'day', models: ['dear-*'] }] });
    const twice = '{"model":"cheap","model":"dear-1","max_tokens":100}';
    const response = await fetch(`${limited.postern.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' },
      body: twice,
    });
    expect([response.status, response.headers.get('x-gateway-error')]).toEqual([400, 'model_not_determined']);
  });

  it('that only warns counts a call whose model is not certain', async () => {
    const key = await ofNewTeam({
      budgets: [{ tokens: 10_000, period: 'day', models: ['dear-*'], mode: 'warn' }],
    });
    const response = await fetch(`${limited.postern.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' },
      body: '{"model":"cheap","model":"dear-1","max_tokens":100}',
    });
    expect(response.status).toBe(200);
    const [row] = await rowsOf(key.id, 1);
    expect(row!.charge_rules).toHaveLength(1);
  });
});

describe('a limit for some providers', () => {
  it('counts only calls to them, also where a route sends the call on to another one', async () => {
    const other = await RawProvider.start(async ({ body, socket }) => {
      await body.catch(() => {});
      socket.write(answer('200 OK', JSON_TYPE, usageResponse({ input: 100, output: 100 })));
    });
    const failing = await RawProvider.start(async ({ body, socket }) => {
      await body.catch(() => {});
      socket.write(answer('429 Too Many Requests', JSON_TYPE, '{}'));
    });
    try {
      await admin('POST', '/providers', {
        name: 'other',
        url: other.url,
        secret: 'sk-of-a-provider-0123456789',
      });
      await admin('POST', '/providers', {
        name: 'failing',
        url: failing.url,
        secret: 'sk-of-a-provider-0123456789',
      });
      await admin('POST', '/routes', {
        name: 'over',
        targets: [{ provider: 'failing' }, { provider: 'other' }],
      });
      const key = await ofNewTeam({
        budgets: [
          { tokens: 1_000, period: 'day', providers: ['other'] },
          { tokens: 5_000, period: 'day', providers: ['failing'] },
        ],
      });
      const send = (path: string) => limited.send(key.key, { model: 'm', max_tokens: 100 }, path);
      for (let i = 0; i < 3; i++) expect((await send('/v1/chat/completions')).status).toBe(200);
      const { admitted, last } = await untilRejected(() => send('/p/over/v1/chat/completions'), 6);
      expect(admitted).toBeGreaterThanOrEqual(3);
      expect(last.headers.get('x-gateway-limit')).toBe('key tokens day provider=other');
      // The provider of the default has no budget.
      expect((await send('/v1/chat/completions')).status).toBe(200);
      // The failing target rests after some calls.
      await eventually(async () => {
        const rows = await limited.postern.database.query(
          "SELECT FROM request_log WHERE key_id = $1 AND provider = 'other'",
          [key.id],
        );
        return rows.length === admitted;
      });
      await expectExact();
      const spent = await limited.postern.database.query<{ filter: string; spent: string }>(
        `SELECT r.filter, m.spent::text FROM limit_rule r JOIN limit_meter m ON m.rule_id = r.id
         WHERE r.owner_id = $1 ORDER BY 1`,
        [key.id],
      );
      // What the provider rejected has cost nothing.
      expect(spent).toEqual([
        { filter: 'provider=failing', spent: '0' },
        { filter: 'provider=other', spent: String(admitted * 200) },
      ]);
    } finally {
      await other.stop();
      await failing.stop();
    }
  });

  it('names providers that there are, and no routes', async () => {
    await expect(
      ofNewTeam({ budgets: [{ usd: '1', period: 'day', providers: ['nobody'] }] }),
    ).rejects.toThrow(/there is no provider nobody; add it first/);
    await expect(ofNewTeam({ budgets: [{ usd: '1', period: 'day', providers: ['over'] }] })).rejects.toThrow(
      /there is no provider over/,
    );
  });
});

describe('a budget for each session', () => {
  it('ends one session and lets another go on; calls without one are not counted', async () => {
    const key = await ofNewTeam({ each_session: { budgets: [{ usd: '0.0044', period: 'session' }] } });
    const of = (session: string) =>
      call(key, { model: 'm', max_tokens: 100 }, { 'x-gateway-session': session });
    const { admitted, last } = await untilRejected(() => of('session one'), 5);
    expect(admitted).toBeGreaterThanOrEqual(2);
    expect([last.status, last.code, last.headers.get('x-should-retry')]).toEqual([
      402,
      'insufficient_quota',
      'false',
    ]);
    expect(last.headers.get('x-gateway-limit')).toBe('key_session usd session');
    expect(last.error.message).toMatch(/^The budget of this session of this gateway key /);
    expect((await of('session two')).status).toBe(200);
    expect((await call(key)).status).toBe(200);
    // In the body it is what an application says of its users, not of itself.
    expect((await call(key, { model: 'm', metadata: { session_id: 'session one' } })).status).toBe(200);
    await rowsOf(key.id, admitted + 3);
    await expectExact();
    const subjects = await limited.postern.database.query<{ subject: string; spent: string }>(
      `SELECT subject, spent::text FROM limit_meter m JOIN limit_rule r ON r.id = m.rule_id
       WHERE r.owner_id = $1 AND spent > 0 ORDER BY spent DESC`,
      [key.id],
    );
    expect(subjects.map(({ spent }) => spent)).toEqual([String(admitted * 1_100_000), '1100000']);
    // A hash has no space.
    expect(JSON.stringify(subjects)).not.toMatch(/session (one|two)/);
  });

  it('of a key is not used up by another key that names it; of a team, it is', async () => {
    const budgets = [{ usd: '0.0044', period: 'session' }];
    const own = [
      await ofNewTeam({ each_session: { budgets } }),
      await ofNewTeam({ each_session: { budgets } }),
    ];
    const team = `shared-${++teams}`;
    await admin('POST', '/teams', { name: team, each_session: { budgets } });
    const ofTeam = [await limited.issue({ team }), await limited.issue({ team })];
    const of = (key: Issued) =>
      call(key, { model: 'm', max_tokens: 100 }, { 'x-gateway-session': 'the same' });
    for (const [one, other, status] of [
      [...own, 200],
      [...ofTeam, 402],
    ] as [Issued, Issued, number][]) {
      // On a busy machine, a call is rejected while more is reserved for those before it than they cost: then another fits.
      let [admitted, all] = [0, 0];
      do {
        ({ admitted } = await untilRejected(() => of(one), 5));
        all += admitted;
        await rowsOf(one.id, all);
        await expectExact();
      } while (admitted > 0);
      expect((await of(other)).status).toBe(status);
    }
  });

  it.each<[string, Record<string, string>]>([
    ['characters beyond ASCII', { 'x-gateway-session': 's\u00e9ance "%_\\' }],
    ['8,000 characters', { 'x-gateway-session': 's'.repeat(8_000) }],
    ['a later header, the first being empty', { 'x-gateway-session': '', 'x-session-id': 'late' }],
  ])('counts a session of %s', async (_, headers) => {
    const key = await ofNewTeam({ each_session: { budgets: [{ usd: '0.0044', period: 'session' }] } });
    const { admitted, last } = await untilRejected(
      () => call(key, { model: 'm', max_tokens: 100 }, headers),
      5,
    );
    expect(admitted).toBeGreaterThanOrEqual(2);
    expect([last.status, last.code]).toEqual([402, 'insufficient_quota']);
    await rowsOf(key.id, admitted);
    await expectExact();
  });

  it('takes the period session, and others do not', async () => {
    await expect(ofNewTeam({ each_session: { budgets: [{ usd: '1', period: 'day' }] } })).rejects.toThrow(
      /must have the period session/,
    );
    await expect(ofNewTeam({ budgets: [{ usd: '1', period: 'session' }] })).rejects.toThrow(
      /must not have the period session/,
    );
  });
});

it('forgets sessions that were not used for 10 days, 100,000 at once, and no other', async () => {
  const key = await ofNewTeam({ each_session: { budgets: [{ usd: '5', period: 'session' }] } });
  const { database, gateway } = limited.postern;
  const many = (name: string, count: number, columns: string, values: string) =>
    database.query(
      `INSERT INTO limit_meter (rule_id, subject, window_start, ${columns})
       SELECT r.id, '${name} ' || n, to_timestamp(0), ${values} FROM limit_rule r, generate_series(1, ${count}) n
       WHERE r.owner_id = $1`,
      [key.id],
    );
  await many('old', 100_000, 'spent, admitted_at', "1, now() - interval '11 days'");
  await many('unused', 10, 'spent', '0');
  await many('late', 10, 'spent, admitted_at', "1, now() - interval '9 days'");
  await many('held', 10, 'spent, held, admitted_at', "1, 1, now() - interval '11 days'");
  const ledger = gateway.app.get(LedgerService);
  // Before the first exchange, nothing is swept.
  await eventually(() => ledger.exchange.confirmedAt > -Infinity);
  await ledger.sweep();
  const left = await database.query<{ name: string; count: number }>(
    `SELECT split_part(subject, ' ', 1) AS name, count(*)::int FROM limit_meter m JOIN limit_rule r ON r.id = m.rule_id
       WHERE r.owner_id = $1 GROUP BY 1 ORDER BY 1`,
    [key.id],
  );
  expect(left).toEqual([
    { name: 'held', count: 10 },
    { name: 'late', count: 10 },
  ]);
});

describe('a new budget', () => {
  it('counts what was used since its period began, or from now if that is asked for', async () => {
    const key = await ofNewTeam();
    for (let i = 0; i < 3; i++) await call(key);
    await rowsOf(key.id, 3);
    const used = async (members: object) => {
      await admin('PATCH', `/keys/${key.id}`, members);
      const { data } = await admin<{ data: { used: string; models: string[] | null }[] }>(
        'GET',
        `/limits?key=${key.id}`,
      );
      return data.map((limit) => limit.used).sort();
    };
    expect(await used({ budgets: [{ usd: '5', period: 'month' }] })).toEqual(['0.0033']);
    // The same one, changed, keeps what it has counted.
    expect(await used({ budgets: [{ usd: '6', period: 'month', count_from: 'now' }] })).toEqual(['0.0033']);
    expect(await used({ budgets: [{ usd: '5', period: 'day', count_from: 'now' }] })).toEqual(['0.00']);
    const filtered = [
      { tokens: 5_000, period: 'month', models: ['m*'] },
      { tokens: 5_000, period: 'month', models: ['n'] },
      { tokens: 5_000, period: 'total' },
    ];
    expect(await used({ budgets: filtered })).toEqual(['0', '0', '600']);
  });
});

describe('limits of new kinds', () => {
  it('are refused while a process of an earlier version would not count them', async () => {
    const old = new pg.Client({
      connectionString: limited.postern.database.url,
      application_name: 'postern-changes',
    });
    await old.connect();
    try {
      const budget = { usd: '1', period: 'day' };
      for (const members of [
        { budgets: [{ ...budget, models: ['x'] }] },
        { each_session: { budgets: [{ usd: '1', period: 'session' }] } },
      ])
        await expect(ofNewTeam(members)).rejects.toThrow(/409.*upgrade_in_progress/);
      await expect(installation({ budgets: [budget] })).rejects.toThrow(/409.*upgrade_in_progress/);
      await ofNewTeam({ budgets: [budget] });
    } finally {
      await old.end();
    }
  });

  it('are at most four budgets for the same calls, and 32 for an owner', async () => {
    const budgets = (filter: object) =>
      ['day', 'week', 'month', 'total'].map((period) => ({ usd: '1', period, ...filter }));
    await ofNewTeam({ budgets: [...budgets({}), ...budgets({ models: ['a'] })] });
    const fifth = { tokens: 5, period: 'day', models: ['a'] };
    await expect(ofNewTeam({ budgets: [...budgets({ models: ['a'] }), fifth] })).rejects.toThrow(
      /at most 4 budgets for the same providers and models/,
    );
    const many = Array.from({ length: 8 }, (_, i) => budgets({ models: [`m${i}`] })).flat();
    const key = await ofNewTeam({ budgets: many });
    await expect(admin('PATCH', `/keys/${key.id}`, { limits: { requests_per_minute: 5 } })).rejects.toThrow(
      /at most 32 limits and budgets/,
    );
  });

  never(
    'go on to be charged by calls that were admitted before a rule was removed, and break no batch',
    async () => {
      const key = await ofNewTeam({ budgets: [{ usd: '1', period: 'day', models: ['m'] }] });
      let release = () => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      limited.provider.script = async ({ body, socket }) => {
        await body.catch(() => {});
        await held;
        socket.write(answer('200 OK', JSON_TYPE, usageResponse(limited.use)));
      };
      const before = limited.provider.requests.length;
      const calls = Array.from({ length: 5 }, () => call(key));
      await eventually(() => limited.provider.requests.length - before >= 5);
      await admin('PATCH', `/keys/${key.id}`, { budgets: null });
      release();
      expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
      const rows = await rowsOf(key.id, 5);
      expect(rows.map(({ charge_rules }) => charge_rules?.length)).toEqual([1, 1, 1, 1, 1]);
    },
  );
});

it('filtered limits without a limit are rejected, where they would limit nothing', async () => {
  await expect(ofNewTeam({ filtered_limits: [{ models: ['m'] }] })).rejects.toThrow(
    /give a limit, or leave this entry out/,
  );
});

it('an unknown owner has none', async () => {
  const { data } = await admin<{ data: object[] }>(
    'GET',
    `/limits?key=${uuidv7()}&scope=key&provider=openai`,
  );
  expect(data).toEqual([]);
});
