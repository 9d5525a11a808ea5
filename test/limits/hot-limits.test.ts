import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { LimitExceededError } from '../../src/limits/ledger/limit-errors.js';
import type { TestDatabase } from '../support/database.js';
import { eventually, timePasses } from '../support/eventually.js';
import { never } from '../support/never.js';
import { call, Ledgers, rejection, usd, written } from './ledgers.js';
import { addRule, chargedUsd, holdsOf, KEY, meterOf, TEAM, USD } from './rules.js';

let ledgers: Ledgers;
let database: TestDatabase;
beforeEach(async () => {
  ledgers = await Ledgers.start();
  database = ledgers.database;
});
afterEach(() => ledgers.stop());

const HOT = { rank: 2 };

/** What is spent, in the meter and in parts. */
async function parts(rule: string): Promise<{ meter: bigint; parts: bigint }> {
  const [row] = await database.query<{ meter: string; parts: string }>(
    `SELECT COALESCE((SELECT sum(spent) FROM limit_meter WHERE rule_id = $1), 0)::text AS meter,
            COALESCE((SELECT sum(spent) FROM limit_spent WHERE rule_id = $1), 0)::text AS parts`,
    [rule],
  );
  return { meter: BigInt(row!.meter), parts: BigInt(row!.parts) };
}

async function locked(text: string, values: unknown[]) {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query('BEGIN');
  await client.query(text, values);
  const query = async (sql: string) => (await client.query<object>(sql)).rows;
  return { query, end: () => client.end() };
}

/** Adds the parts of a rule to its meter. Without a rule, it would leave a meter alone that an exchange has just locked. */
const fold = (rule: string) => database.query('SELECT limit_fold($1)', [rule]);

const lockMeter = (rule: string) => locked('SELECT FROM limit_meter WHERE rule_id = $1 FOR UPDATE', [rule]);

describe('a limit that all replicas share', () => {
  it('is charged in parts, so that no row waits for its meter, and counts them before they are added to it', async () => {
    const rule = await addRule(database, 'usd', 'total', 10n * USD, HOT);
    const own = await addRule(database, 'usd', 'day', 100n * USD);
    const at = await ledgers.engine();
    await call(at, USD);
    const ticket = await at.admit(TEAM, KEY, usd(1n));
    await written(at, 1);
    const session = await lockMeter(rule);
    at.begin(ticket, KEY, TEAM).end(1n);
    await written(at, 2);
    await session.end();
    expect(await parts(rule)).toEqual({ meter: 0n, parts: USD + 1n });
    expect((await meterOf(database, own)).spent).toBe(USD + 1n);
    const { state } = await rejection(() => at.admit(TEAM, KEY, usd(9n * USD)));
    expect(state.rule.id).toBe(rule);
    await fold(rule);
    expect(await parts(rule)).toEqual({ meter: USD + 1n, parts: 0n });
    // An exchange that waited for the meter has read what was charged meanwhile, and counted it as held as well.
    const last = await eventually(async () => {
      try {
        return await at.admit(TEAM, KEY, usd(9n * USD - 1n));
      } catch (error) {
        if (error instanceof LimitExceededError) return null;
        throw error;
      }
    });
    last.release();
    await rejection(() => at.admit(TEAM, KEY, usd(9n * USD)));
  });

  it('leaves the limits of keys alone while its meter is locked', async () => {
    const rule = await addRule(database, 'usd', 'total', 10n * USD, HOT);
    const other = uuidv7();
    await addRule(database, 'usd', 'total', USD, { scope_id: other });
    await addRule(database, 'requests', 'minute', 100, { scope_id: other });
    const at = await ledgers.engine();
    await call(at, USD);
    const session = await lockMeter(rule);
    let admitted = false;
    const waiting = Promise.resolve(at.admit(TEAM, KEY, usd(8n * USD))).then((ticket) => {
      admitted = true;
      ticket.release();
    });
    for (let i = 0; i < 10; i++) at.begin(await at.admit(TEAM, other, usd(1n)), other, TEAM).end(1n);
    await written(at, 11);
    expect(admitted).toBe(false);
    await session.end();
    await waiting;
    (await at.admit(TEAM, KEY, usd(8n * USD))).release();
  });

  it('raises its alerts when the parts are added', async () => {
    const rule = await addRule(database, 'usd', 'total', 10n * USD, { ...HOT, alert_at: [50] });
    const at = await ledgers.engine();
    await call(at, 6n * USD);
    await written(at, 1);
    expect((await database.query('SELECT alerted FROM limit_meter'))[0]).toEqual({ alerted: 0 });
    await fold(rule);
    const [meter] = await database.query('SELECT rule_id, spent, alerted FROM limit_meter');
    expect(meter).toEqual({ rule_id: rule, spent: String(6n * USD), alerted: 50 });
  });

  never('adds parts exactly while they are charged, and loses none', async () => {
    const rule = await addRule(database, 'usd', 'total', 1_000n * USD, HOT);
    const engines = [await ledgers.engine(), await ledgers.engine()];
    let calls = 0;
    let isOver = false;
    const folding = (async () => {
      for (; !isOver; await timePasses(10, 'between two additions'))
        await database.query('SELECT limit_fold()');
    })();
    await Promise.all(
      engines.map(async (at) => {
        for (let i = 0; i < 150; i++, calls++) {
          await call(at, 10_000_000n, 7_654_321n);
          if (i % 10 === 0) await timePasses(20, 'the pace of the calls');
        }
        await written(at, 150);
      }),
    );
    isOver = true;
    await folding;
    await fold(rule);
    expect(await chargedUsd(database)).toBe(300n * 7_654_321n);
    expect((await meterOf(database, rule)).spent).toBe(300n * 7_654_321n);
    for (const at of engines) await ledgers.stopEngine(at);
    expect({ held: (await meterOf(database, rule)).held, holds: await holdsOf(database, rule) }).toEqual({
      held: 0n,
      holds: 0n,
    });
  });

  it('rejects calls at once after it was found spent, and admits them once there is more', async () => {
    const rule = await addRule(database, 'usd', 'total', USD, HOT);
    const at = await ledgers.engine();
    await call(at, USD);
    await written(at, 1);
    // Soon after one was rejected, the next one is without a promise: nothing is asked.
    await eventually(async () => {
      await rejection(() => at.admit(TEAM, KEY, usd(USD)));
      try {
        await expect(at.admit(TEAM, KEY, usd(USD))).rejects.toBeInstanceOf(LimitExceededError);
        return false;
      } catch (error) {
        if (error instanceof LimitExceededError) return true;
        throw error;
      }
    });
    await database.query('UPDATE limit_rule SET amount = $2 WHERE id = $1', [rule, String(10n * USD)]);
    await eventually(async () => {
      try {
        (await at.admit(TEAM, KEY, usd(USD))).release();
        return true;
      } catch {
        return false;
      }
    });
  });

  it('returns what a process held that has ended', async () => {
    const rule = await addRule(database, 'usd', 'total', 10n * USD, HOT);
    const at = await ledgers.engine();
    const ticket = await at.admit(TEAM, KEY, usd(USD));
    expect(await holdsOf(database, rule)).toBeGreaterThan(0n);
    const [hold] = await database.query<{ process: string }>('SELECT process FROM limit_hold');
    // In one transaction: the next exchange of the process, which goes on here, asks for it again.
    const forgetting = await locked('SELECT limit_forget($1)', [hold!.process]);
    const left = await forgetting.query(
      'SELECT process FROM limit_hold UNION ALL SELECT id FROM limit_hot_process',
    );
    expect(left).toEqual([]);
    await forgetting.end();
    ticket.release();
  });

  it('leaves no parts of a rule that was removed', async () => {
    const rule = await addRule(database, 'usd', 'total', 10n * USD, HOT);
    const at = await ledgers.engine();
    await call(at, USD);
    await written(at, 1);
    await database.query('DELETE FROM limit_rule WHERE id = $1', [rule]);
    await database.query('SELECT limit_sweep()');
    expect(await database.query('SELECT FROM limit_spent')).toEqual([]);
  });
});
