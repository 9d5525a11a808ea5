import { mkdtemp, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { FULL } from '../support/scale.js';
import { LedgerProcess, type LedgerSettings } from './ledger-process.js';
import { addRule, chargedUsd, holdsOf, KEY, meterOf, TEAM, USD } from './rules.js';
import type { Work } from './spender.js';
import { spend } from './spenders.js';

let database: TestDatabase;
beforeEach(async () => {
  database = await createDatabase();
});
afterEach(() => database.drop());

const PROCESSES = 4;
const IN_FLIGHT = 50;
const BUDGET = 20n * USD;
/** Cents, so that the budget is spent in seconds. */
const CENT = USD / 100n;

const isRun = (name: string) => name.length === 36;

const work = {
  kind: 'spend',
  teamId: TEAM,
  keyId: KEY,
  inFlight: IN_FLIGHT,
  callMs: 60,
  forMs: 200_000,
} as const;

const settings = () => Array.from({ length: PROCESSES }, () => ({ databaseUrl: database.url }));

/**
 * Four processes spend a budget until each call in flight of theirs was rejected, then one process what is left.
 *
 * @returns what was charged by the four, and by all five
 */
async function spendAll(reserved: bigint, least: bigint, most: bigint, columns: object) {
  const rule = await addRule(database, 'usd', 'month', BUDGET, { ...columns });
  const costs = { reserved: String(reserved), least: String(least), most: String(most) };
  const byFour = await spendUntilRejected(rule, settings(), { ...work, ...costs });
  const byAll = await spendUntilRejected(rule, settings().slice(0, 1), { ...work, ...costs, inFlight: 1 });
  return { byFour, byAll };
}

/** How many processes hold some of a rule. */
async function holders(rule: string): Promise<number> {
  const rows = await database.query('SELECT DISTINCT process FROM limit_hold WHERE rule_id = $1', [rule]);
  return rows.length;
}

/** @returns what is charged by now, all of which is part of what is spent */
async function spendUntilRejected(rule: string, processes: LedgerSettings[], costs: Work) {
  const spenders = await spend(processes, costs);
  const reports = await Promise.all(spenders.map(({ done }) => done));
  const charged = await chargedUsd(database);
  const meter = await meterOf(database, rule);
  const errors = reports.flatMap((report) => report!.errors);
  expect({ errors, spent: meter.spent, held: meter.held, holds: await holdsOf(database, rule) }).toEqual({
    errors: [],
    spent: charged,
    held: 0n,
    holds: 0n,
  });
  return charged;
}

describe.each([
  ['a key', {}],
  ['all replicas, settled in parts', { rank: 2 }],
])('a budget of %s', (_, columns) => {
  it('spends a budget with four processes of 50 calls in flight each, never more than there is, if no call costs more than it reserved', async () => {
    const { byFour, byAll } = await spendAll(CENT, CENT / 4n, CENT, columns);
    // A process that did not return its part within a second leaves some of the budget.
    expect(byFour).toBeGreaterThan(BUDGET - BUDGET / 50n);
    expect(byAll).toBeLessThanOrEqual(BUDGET);
    // What is left is less than what one call reserves.
    expect(byAll).toBeGreaterThan(BUDGET - CENT);
  });

  it('exceeds a budget by at most 1 % if calls cost what they reserved only on average', async () => {
    const { byFour, byAll } = await spendAll(CENT / 2n, 0n, CENT, columns);
    expect(byFour).toBeGreaterThan(BUDGET - BUDGET / 50n);
    expect(byAll).toBeLessThanOrEqual(BUDGET + BUDGET / 100n);
    expect(byAll).toBeGreaterThan(BUDGET - CENT);
  });

  never(
    'counts to the billionth of a dollar what the log has, also after two of four processes were killed',
    async () => {
      const rule = await addRule(database, 'usd', 'month', 100n * BUDGET, { ...columns });
      const team = await addRule(database, 'usd', 'total', 100n * BUDGET, { scope: 'team', scope_id: TEAM });
      const folders = await Promise.all(
        Array.from({ length: PROCESSES }, () => mkdtemp(join(tmpdir(), 'postern-ledger-'))),
      );
      const engines = folders.map((dataDir) => ({ databaseUrl: database.url, dataDir }));
      const killing = { ...work, reserved: String(CENT), least: '1', most: String(CENT) };
      const killed = await spend(engines.slice(0, 2), { ...killing, forMs: 600_000 });
      await eventually(async () => (await holders(rule)) === killed.length);
      const others = await spend(engines.slice(2), { ...killing, forMs: FULL ? 30_000 : 3_000 });
      for (const one of killed) {
        const { spent } = await meterOf(database, rule);
        await eventually(async () => (await meterOf(database, rule)).spent > spent);
        one.kill();
      }
      const reports = await Promise.all([...killed, ...others].map(({ done }) => done));
      expect(reports.map((report) => report?.errors ?? null)).toEqual([null, null, [], []]);
      // What the dead held is not free for others until their calls are charged.
      expect(await holdsOf(database, rule)).toBeGreaterThan(0n);

      // A start on the folder of each dead process drains its journal.
      for (const dataDir of folders.slice(0, 2)) {
        const next = await LedgerProcess.start({ databaseUrl: database.url, dataDir });
        // Its folder is gone, so what the dead process held is returned.
        await eventually(async () => (await readdir(join(dataDir, 'journal'))).filter(isRun).length === 1);
        await next.stop();
      }
      expect(await holdsOf(database, rule)).toBe(0n);
      const [interrupted] = await database.query<{ count: string; charged: string }>(
        `SELECT count(*), min(charge_usd)::text AS charged FROM request_log WHERE outcome = 'interrupted'`,
      );
      // The calls that ran when their process died are charged what they had reserved.
      expect(interrupted!.charged).toBe('0.010000000');
      const charged = await chargedUsd(database);
      expect(charged).toBeGreaterThan(0n);
      expect(await meterOf(database, rule)).toMatchObject({ spent: charged, held: 0n });
      expect(await meterOf(database, team)).toMatchObject({ spent: charged, held: 0n });
    },
  );
});
