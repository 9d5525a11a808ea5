import { v7 as uuidv7 } from 'uuid';
import { PostgresClock } from '../../src/limits/ledger/postgres-clock.js';
import { RateMeter, type RateEntry, type RateResult, SLOT_MS } from '../../src/limits/ledger/rate-meter.js';
import { Ticket } from '../../src/limits/ledger/ticket.js';
import type { LogRow } from '../../src/request-log/columns.js';
import type { TestDatabase } from '../support/database.js';
import { eventually, timePasses } from '../support/eventually.js';
import { never } from '../support/never.js';
import { countedFor, type LedgerProcess, type LedgerSettings } from './ledger-process.js';
import { call, Ledgers, rejection, usd, written } from './ledgers.js';
import { addRule, holdsOf, KEY, meterOf, TEAM, USD } from './rules.js';

let ledgers: Ledgers;
let database: TestDatabase;
beforeEach(async () => {
  ledgers = await Ledgers.start();
  database = ledgers.database;
});
afterEach(() => ledgers.stop());

const engine = (settings?: Partial<LedgerSettings>) => ledgers.engine(settings);

it('exchanges the meters of thousands of end users in parts, and decides the calls of others meanwhile', async () => {
  const users = 3_000;
  await addRule(database, 'usd', 'month', USD, { scope: 'key_end_user' });
  const at = await engine();
  const { ledger } = at;
  const admit = (user: number) =>
    ledger.admit(ledger.rulesOf(TEAM, KEY)!, uuidv7(), countedFor(`user ${user}`), usd(USD));
  const calls = Array.from({ length: users }, async (_, i) => admit(i));
  const second = rejection(() => admit(0));
  const tickets = await Promise.all(calls);
  expect(ledger.exchange.counts.ok).toBeGreaterThanOrEqual(users / 1_000);
  await second;
  for (const ticket of tickets) ticket.release();
});

describe('a budget', () => {
  never(
    'admits calls without an await once the process holds some of it, and rejects them when it is spent',
    async () => {
      const rule = await addRule(database, 'usd', 'month', 10n * USD);
      const at = await engine();
      await call(at, USD);
      // One second's worth was asked for together with what the first call needed.
      for (let i = 0; i < 9; i++) await call(at, USD);
      const { state } = await rejection(() => at.admit(TEAM, KEY, usd(USD)));
      expect(state).toMatchObject({ amount: 10n * USD, retryAfterMs: null });
      expect(state.rule.id).toBe(rule);
      const now = new Date();
      expect(state.resetsAt).toEqual(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)));
      await written(at, 10);
      await ledgers.stopEngine(at);
      expect(await meterOf(database, rule)).toEqual({ subject: '', spent: 10n * USD, held: 0n, refused: 1n });
    },
  );

  it('takes no exchange for a call within what is held', async () => {
    await addRule(database, 'usd', 'month', 1_000n * USD);
    const measure = async () => {
      const at = await engine();
      let synchronous = 0;
      for (let i = 0; i < 300; i++) {
        const admitted = at.admit(TEAM, KEY, usd(1_000n));
        if (admitted instanceof Ticket) synchronous++;
        at.begin(await admitted, KEY, TEAM).end(1_000n);
        if (i % 20 === 0) await timePasses(20, 'the pace of the calls, during which exchanges take place');
      }
      return { synchronous, exchanges: at.ledger.exchange.counts.ok };
    };
    let measured = await measure();
    // A busy machine may take longer for the calls of one, during which more exchanges take place.
    for (let more = 0; more < 2 && (measured.synchronous <= 250 || measured.exchanges >= 30); more++)
      measured = await measure();
    // But for the first ones, which show how much is used in a second.
    expect(measured.synchronous).toBeGreaterThan(250);
    expect(measured.exchanges).toBeLessThan(30);
  });

  it('calls back what another process holds and does not use, before it rejects', async () => {
    await addRule(database, 'usd', 'month', 10n * USD);
    const [one, two] = [await engine(), await engine()];
    // One process holds the whole budget for calls that end up cheap.
    const tickets: Ticket[] = [];
    for (let i = 0; i < 9; i++) tickets.push(await one.admit(TEAM, KEY, usd(USD)));
    const recalls = await ledgers.recalls();
    // At once: what it then does not return within a second, the other one does not wait for.
    recalls.onRecall = () => {
      for (const ticket of tickets.splice(0)) ticket.release();
    };
    const waiting = two.admit(TEAM, KEY, usd(3n * USD));
    expect(two.ledger.waitingCalls).toBe(1);
    await eventually(() => recalls.count > 0);
    const ticket = await waiting;
    ticket.release();
  });

  it('rejects at once if nothing that others hold could help', async () => {
    await addRule(database, 'usd', 'month', USD);
    const at = await engine();
    await call(at, USD);
    await written(at, 1);
    const before = at.ledger.exchange.counts.ok;
    await rejection(() => at.admit(TEAM, KEY, usd(USD)));
    expect(at.ledger.exchange.counts.ok - before).toBeLessThanOrEqual(3);
  });

  it('waits for the charges of calls that have ended, which an exchange may count twice', async () => {
    const rule = await addRule(database, 'usd', 'month', 10n * USD);
    const at = await engine();
    const late: (readonly LogRow[])[] = [];
    const count = at.ledger.written.bind(at.ledger);
    at.ledger.written = (rows) => void late.push([...rows]);
    await call(at, 5n * USD);
    await eventually(async () => (await meterOf(database, rule)).spent === 5n * USD);
    // Spent, and still held by the call: nothing seems to be left.
    const before = at.ledger.exchange.counts.ok;
    const admitted = at.admit(TEAM, KEY, usd(3n * USD));
    await eventually(() => at.ledger.exchange.counts.ok > before + 1);
    for (const rows of late) count(rows);
    (await admitted).release();
  });

  it('is charged what the call cost, also if that is more than it reserved', async () => {
    const rule = await addRule(database, 'usd', 'month', 10n * USD);
    const at = await engine();
    await call(at, USD, 12n * USD);
    await rejection(() => at.admit(TEAM, KEY, usd(USD)));
    await written(at, 1);
    await eventually(async () => (await meterOf(database, rule)).spent === 12n * USD);
  });

  it('is shared: a call must be admitted by the team and the key', async () => {
    await addRule(database, 'usd', 'month', 100n * USD);
    const team = await addRule(database, 'usd', 'day', 2n * USD, { scope: 'team', scope_id: TEAM });
    const at = await engine();
    await call(at, USD);
    await call(at, USD);
    expect((await rejection(() => at.admit(TEAM, KEY, usd(USD)))).state.rule.id).toBe(team);
    // The same team, another key without limits of its own.
    expect((await rejection(() => at.admit(TEAM, uuidv7(), usd(USD)))).state.rule.id).toBe(team);
    // Another team.
    expect(at.ledger.rulesOf(uuidv7(), uuidv7())).toBeNull();
  });

  it('counts for each end user alone, in a mode that blocks or only warns', async () => {
    await addRule(database, 'usd', 'day', USD, { scope: 'key_end_user' });
    const warns = await addRule(database, 'usd', 'month', USD, { mode: 'warn' });
    const at = await engine();
    const set = at.ledger.rulesOf(TEAM, KEY)!;
    expect(set).toMatchObject({
      needsUsd: true,
      needsEndUser: true,
      chargesEndUser: true,
      chargesTokens: false,
    });
    for (const user of ['ann', 'ben']) {
      const subject = at.ledger.subjectOf(user);
      const ticket = await at.ledger.admit(set, uuidv7(), countedFor(subject), usd(USD));
      expect(ticket.reservation).toMatchObject({ usd: 1e9, tokens: null, subject, session: null });
      at.begin(ticket, KEY, TEAM).end(USD);
      await rejection(() => at.ledger.admit(set, uuidv7(), countedFor(subject), usd(USD)));
    }
    await written(at, 2);
    // It would have been exhausted by the first.
    await eventually(async () => (await meterOf(database, warns)).spent === 2n * USD);
    expect(await holdsOf(database, warns)).toBe(0n);
  });

  it('for each end user stores nothing of those whose first call needs more than there is', async () => {
    const rule = await addRule(database, 'usd', 'day', USD, { scope: 'key_end_user' });
    const at = await engine();
    const set = at.ledger.rulesOf(TEAM, KEY)!;
    const admit = (user: string, amount: bigint) =>
      at.ledger.admit(set, uuidv7(), countedFor(user), usd(amount));
    const { state } = await rejection(() => admit('ann', 2n * USD));
    expect(state).toMatchObject({ used: 0n, amount: USD, needed: 2n * USD });
    await admit('ben', USD);
    await rejection(() => admit('ben', 2n * USD));
    await eventually(async () => (await meterOf(database, rule)).refused === 1n);
    expect(await database.query('SELECT subject FROM limit_meter')).toEqual([{ subject: 'ben' }]);
    (await admit('ann', USD)).release();
  });

  it('for each session ends it on all replicas, and another session goes on', async () => {
    const ofSession = { scope: 'key_session', scope_id: uuidv7(), owner_id: KEY };
    const rule = await addRule(database, 'usd', 'session', 5n * USD, ofSession);
    const replicas = [await engine(), await engine(), await engine()];
    const spend = async (at: LedgerProcess, session: string) => {
      const counted = { ...countedFor(''), session };
      const ticket = await at.ledger.admit(at.ledger.rulesOf(TEAM, KEY)!, uuidv7(), counted, usd(USD));
      at.begin(ticket, KEY, TEAM).end(USD);
      return ticket;
    };
    for (let i = 0; i < 5; i++) await spend(replicas[i % 3]!, 'one');
    for (const [i, at] of replicas.entries()) await written(at, i < 2 ? 2 : 1);
    for (const at of replicas) {
      expect((await rejection(() => spend(at, 'one'))).state.rule.id).toBe(rule);
      await spend(at, 'two');
    }
    const spent = () =>
      database.query<object>('SELECT subject, spent FROM limit_meter WHERE rule_id = $1 ORDER BY subject', [
        rule,
      ]);
    const all = [
      { subject: 'one', spent: String(5n * USD) },
      { subject: 'two', spent: String(3n * USD) },
    ];
    await eventually(async () => JSON.stringify(await spent()) === JSON.stringify(all));
  });

  it('is in force with a new amount within a second, and held no longer than it is needed', async () => {
    const rule = await addRule(database, 'usd', 'month', 100n * USD);
    const at = await engine();
    for (let i = 0; i < 5; i++) await call(at, USD);
    await written(at, 5);
    await database.query('UPDATE limit_rule SET amount = $2 WHERE id = $1', [rule, String(5n * USD)]);
    await eventually(() => at.ledger.rulesOf(TEAM, KEY)!.rules[0]!.amount === 5n * USD);
    await eventually(async () => (await holdsOf(database, rule)) === 0n);
    await rejection(() => at.admit(TEAM, KEY, usd(USD)));
    await database.query('UPDATE limit_rule SET amount = $2 WHERE id = $1', [rule, String(6n * USD)]);
    await call(at, USD);
    await database.query('DELETE FROM limit_rule WHERE id = $1', [rule]);
    await eventually(() => at.ledger.rulesOf(TEAM, KEY) === null);
  });
});

describe('holds', () => {
  const exchange = (process: string, seq: number, rule: string, entry: object) =>
    database.query<{ result: { holds: { total: string; free: string; loose: string }[] } | null }>(
      `SELECT limit_exchange($1, $2, interval '25 min', '[]', $3, '[]') AS result`,
      [
        process,
        seq,
        JSON.stringify([
          {
            n: 0,
            rule,
            subject: '',
            starts: 0,
            used: 0,
            kept: 0,
            recent: 0,
            waiting: 0,
            one: 0,
            refused: 0,
            recall: false,
            ...entry,
          },
        ]),
      ],
    );

  never('do not change by a message that is executed after a newer one', async () => {
    const rule = await addRule(database, 'usd', 'total', 100);
    const process = uuidv7();
    await exchange(process, 2, rule, { waiting: 10, one: 10 });
    expect(await holdsOf(database, rule)).toBe(10n);
    const [late] = await exchange(process, 1, rule, { waiting: 50, one: 50 });
    expect(late!.result).toBeNull();
    expect(await meterOf(database, rule)).toMatchObject({ held: 10n });
  });

  it('never add up to more than the budget, however many ask at once', async () => {
    const rule = await addRule(database, 'usd', 'total', 100);
    await Promise.all(
      Array.from({ length: 20 }, () => exchange(uuidv7(), 1, rule, { waiting: 30, one: 10, recent: 30 })),
    );
    const held = await holdsOf(database, rule);
    expect(held).toBeLessThanOrEqual(100n);
    expect(held).toBeGreaterThan(90n);
    expect(await meterOf(database, rule)).toMatchObject({ held });
  });

  never(
    'of a process that was not seen for so long go to those who need them, and it cannot use what it kept',
    async () => {
      const rule = await addRule(database, 'usd', 'total', 100);
      const [dead, alive] = [uuidv7(), uuidv7()];
      await exchange(dead, 1, rule, { waiting: 100, one: 100 });
      expect((await exchange(alive, 1, rule, { waiting: 60, one: 60 }))[0]!.result!.holds[0]!.total).toBe(
        '0',
      );
      await database.query(`UPDATE limit_process SET seen_at = now() - interval '26 min' WHERE id = $1`, [
        dead,
      ]);
      expect((await exchange(alive, 2, rule, { waiting: 60, one: 60 }))[0]!.result!.holds[0]!.total).toBe(
        '60',
      );
      // What it has used is a fact; what it kept for later is gone.
      expect((await exchange(dead, 2, rule, { used: 10, kept: 100 }))[0]!.result!.holds[0]!.total).toBe('10');
      expect(await meterOf(database, rule)).toMatchObject({ held: 70n });
    },
  );

  it('report what others do not use, and all of one that has not been seen since, unless it is gone', async () => {
    const rule = await addRule(database, 'usd', 'total', 100);
    const [other, asking] = [uuidv7(), uuidv7()];
    let seq = 0;
    const loose = async (seenAgo: string, gone = 15_000) => {
      await database.query(`UPDATE limit_process SET seen_at = now() - $2::interval WHERE id = $1`, [
        other,
        seenAgo,
      ]);
      const entry = { waiting: 50, one: 50, busy: 50, since: 1_000, gone };
      return (await exchange(asking, ++seq, rule, entry))[0]!.result!.holds[0]!.loose;
    };
    await exchange(other, 1, rule, { waiting: 80, one: 80, busy: 80 });
    expect(await loose('-1 minute')).toBe('0');
    await exchange(other, 2, rule, { used: 80, kept: 80, busy: 30 });
    expect(await loose('-1 minute')).toBe('50');
    expect(await loose('8 s')).toBe('80');
    expect(await loose('20 s')).toBe('0');
    expect(await loose('20 s', 60_000)).toBe('80');
    // One of the version before does not say what is busy.
    await exchange(other, 3, rule, { used: 80, kept: 80 });
    expect(await loose('-1 minute')).toBe('50');
  });

  it('are called back for each call that they might reject, however short the last time ago', async () => {
    const rule = await addRule(database, 'usd', 'total', 10);
    const other = uuidv7();
    let seq = 0;
    // Another process, which states ten times a second that its call uses most of the budget.
    let stated: object = { waiting: 8, one: 8, busy: 8 };
    const recalls = await ledgers.recalls();
    const state = () => exchange(other, ++seq, rule, stated);
    await state();
    stated = { used: 8, kept: 8, busy: 8 };
    const stating = new AbortController();
    const done = (async () => {
      while (!stating.signal.aborted) {
        await state();
        await timePasses(100, 'the pace of the other process');
      }
    })();
    const at = await engine();
    await rejection(() => at.admit(TEAM, KEY, usd(3n)));
    expect(recalls.count).toBeGreaterThan(0);
    // The call ends, and says so only when it is asked.
    recalls.onRecall = () => (stated = { used: 0, kept: 0, busy: 0 });
    const late = await Promise.resolve(at.admit(TEAM, KEY, usd(3n))).finally(async () => {
      stating.abort();
      await done;
    });
    late.release();
  });

  it('of concurrency are void after 15 seconds', async () => {
    const rule = await addRule(database, 'concurrent_requests', 'at_once', 2);
    const [dead, alive] = [uuidv7(), uuidv7()];
    await exchange(dead, 1, rule, { waiting: 2, one: 2 });
    await database.query(`UPDATE limit_process SET seen_at = now() - interval '10 s' WHERE id = $1`, [dead]);
    expect((await exchange(alive, 1, rule, { waiting: 1, one: 1 }))[0]!.result!.holds[0]!.total).toBe('0');
    await database.query(`UPDATE limit_process SET seen_at = now() - interval '16 s' WHERE id = $1`, [dead]);
    expect((await exchange(alive, 2, rule, { waiting: 1, one: 1 }))[0]!.result!.holds[0]!.total).toBe('1');
  });

  it('of calls under way stay if the time zone of budgets changes', async () => {
    await addRule(database, 'usd', 'total', 10n * USD);
    await addRule(database, 'concurrent_requests', 'at_once', 2);
    const at = await engine();
    await at.admit(TEAM, KEY, usd(8n * USD));
    const before = at.ledger.rulesOf(TEAM, KEY);
    await database.query("UPDATE limit_rule SET time_zone = 'Asia/Tokyo'");
    await eventually(() => at.ledger.rulesOf(TEAM, KEY) !== before);
    const rejects = async (amount: bigint) =>
      (await rejection(() => at.admit(TEAM, KEY, usd(amount)))).state.rule.resource;
    expect(await rejects(3n * USD)).toBe('usd');
    await at.admit(TEAM, KEY, usd(USD));
    expect(await rejects(1n)).toBe('concurrent_requests');
  });

  it('of calls under way stay if the time zone changes and the period begins at the same time', async () => {
    const rule = await addRule(database, 'usd', 'month', 10n * USD);
    const at = await engine();
    // All in one month.
    const msecs = Date.now();
    const admit = async (amount: bigint) => at.admit(TEAM, KEY, usd(amount), uuidv7({ msecs }));
    const ticket = await admit(8n * USD);
    const before = at.ledger.rulesOf(TEAM, KEY);
    // It has no summer time.
    await database.query("UPDATE limit_rule SET time_zone = 'Africa/Abidjan'");
    await eventually(() => at.ledger.rulesOf(TEAM, KEY) !== before);
    const { state } = await rejection(() => admit(3n * USD));
    expect(state.rule.id).toBe(rule);
    at.begin(ticket, KEY, TEAM).end(USD);
    await written(at, 1);
    (await admit(9n * USD)).release();
    await rejection(() => admit(9n * USD + 1n));
    await ledgers.stopEngine(at);
    expect(await meterOf(database, rule)).toMatchObject({ spent: USD, held: 0n });
    expect(await holdsOf(database, rule)).toBe(0n);
  });
});

describe('a rate', () => {
  it('says when a call may come again', async () => {
    await addRule(database, 'requests', 'minute', 5);
    const at = await engine();
    for (let i = 0; i < 5; i++) await at.admit(TEAM, KEY, usd(0n));
    const askedAt = performance.now();
    const { state } = await rejection(() => at.admit(TEAM, KEY, usd(0n)));
    expect(state).toMatchObject({ used: 5n, amount: 5n, resetsAt: null });
    expect(state.retryAfterMs).toBeGreaterThan(45_000);
    // By the time of Postgres, which may have been read so long ago.
    expect(state.retryAfterMs).toBeLessThanOrEqual(65_000 + Math.ceil(performance.now() - askedAt));
    // A slot of 2.5 seconds counts until the 25 after it are over.
    const [slot] = await database.query<{ first: string }>(
      'SELECT min(slot)::text AS first FROM limit_slot WHERE used > 0',
    );
    const free = (Number(slot!.first) + 26) * 2_500;
    const [clock] = await database.query<{ now: number }>(
      'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
    );
    expect(clock!.now + state.retryAfterMs!).toBeGreaterThanOrEqual(free);
  });

  it('of tokens is corrected by what a call has used', async () => {
    await addRule(database, 'tokens', 'minute', 1_000);
    const at = await engine();
    const tokens = (count: bigint) => ({ usd: 0, tokens: Number(count) });
    const large = await at.admit(TEAM, KEY, tokens(900n));
    await rejection(() => at.admit(TEAM, KEY, tokens(200n)));
    large.settle({ usd: null, tokens: 100 });
    await at.admit(TEAM, KEY, tokens(800n));
    await rejection(() => at.admit(TEAM, KEY, tokens(200n)));
    // Nothing of it was in a budget, so no row has to be waited for.
    expect(large.reservation).toBeNull();
  });

  it('rejects no call that fits once the rest of a slot is returned that has ended during an exchange', async () => {
    await addRule(database, 'tokens', 'minute', 3_000);
    const { ledger } = await engine();
    const [rule] = ledger.rulesOf(TEAM, KEY)!.rules;
    const clock = new PostgresClock();
    const period = { starts: 0, begins: 0, ends: Infinity };
    const meter = new RateMeter(rule!, '', period, () => {}, clock);
    const execute = async (entry: RateEntry, now: number) => {
      const [row] = await database.query<{ result: RateResult }>('SELECT limit_take_rates(1, $1) AS result', [
        JSON.stringify([{ n: 0, ...entry }]),
      ]);
      // As if its slot had begun just now: however slow the machine is, the slot lasts for this process.
      clock.set(row!.result.slot * SLOT_MS, now, now);
      meter.askedAt = now;
      meter.apply(row!.result, now);
      return row!.result.slot;
    };
    const wait = (amount: number) => Object.assign(meter, { waiters: 1, waiting: amount, smallest: amount });
    const exchange = (now: number) => execute(meter.entry(now), now);

    const now = performance.now();
    wait(900);
    const slot = await exchange(now);
    meter.take(100, now);
    wait(2_500);
    const stated = meter.entry(now);
    await eventually(async () => {
      const [at] = await database.query<{ slot: number }>(
        'SELECT floor(extract(epoch FROM clock_timestamp()) / 2.5)::float8 AS slot',
      );
      return at!.slot > slot;
    });
    await execute(stated, now);
    expect([meter.verdict(2_500, now), meter.state(2_500, now).used]).toEqual(['wait', 100n]);
    expect([meter.verdict(2_900, now), meter.verdict(2_901, now)]).toEqual(['wait', 'reject']);
    // Of the slot that has ended, 100 were used: what needs 101 more waits for the next one too.
    expect(meter.state(3_001, now).retryAfterMs).toBeGreaterThanOrEqual(26 * SLOT_MS);

    // Postgres has granted it once, also if a slot ends again.
    await eventually(async () => {
      const at = performance.now();
      await exchange(at);
      return meter.available(at) === 2_500;
    });
    expect(await database.query('SELECT sum(used)::int AS used FROM limit_slot')).toEqual([{ used: 2_600 }]);
  });
});
