import { LimitsUnavailableError } from '../../src/limits/ledger/limit-errors.js';
import type { Ticket } from '../../src/limits/ledger/ticket.js';
import type { TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { setPatience } from '../support/patience.js';
import { call, Ledgers, rejection, usd, written } from './ledgers.js';
import { addRule, chargedUsd, holdsOf, KEY, meterOf, TEAM, USD } from './rules.js';

setPatience(0.2, 'exchanges that fail', 'what calls have not used');

let ledgers: Ledgers;
let database: TestDatabase;
beforeEach(async () => {
  ledgers = await Ledgers.start();
  database = ledgers.database;
});
afterEach(() => ledgers.stop());

describe('while Postgres is unavailable', () => {
  never('a budget spends what is held, then calls fail, and everything is charged afterwards', async () => {
    const rule = await addRule(database, 'usd', 'month', 1_000n * USD);
    const at = await ledgers.behindRelay();
    const cent = USD / 100n;
    for (let i = 0; i < 40; i++) await call(at, cent);
    await eventually(async () => (await holdsOf(database, rule)) > 0n && at.writer.waiting === 0);
    ledgers.relay!.set('*', 'cut');
    let admitted = 0;
    await expect(
      (async () => {
        for (; admitted < 1_000_000; admitted++) await call(at, cent);
      })(),
    ).rejects.toThrow(LimitsUnavailableError);
    // Then without an attempt to reach Postgres for each call.
    expect(() => at.admit(TEAM, KEY, usd(1_000n * USD))).toThrow(LimitsUnavailableError);
    expect(admitted).toBeLessThan(10_000);
    ledgers.relay!.set('*', 'none');
    await written(at, 40 + admitted);
    await eventually(() => at.ledger.exchange.failure === null);
    await call(at, cent);
    await written(at, 41 + admitted);
    expect(await chargedUsd(database)).toBe(BigInt(41 + admitted) * cent);
    expect((await meterOf(database, rule)).spent).toBe(BigInt(41 + admitted) * cent);
  });

  it('a budget is not called spent for what another process that is cut off holds and has not used', async () => {
    const rule = await addRule(database, 'usd', 'month', 10n * USD);
    const [cut, other] = [await ledgers.behindRelay(), await ledgers.engine()];
    const calls = [];
    for (let i = 0; i < 9; i++) calls.push(cut.begin(await cut.admit(TEAM, KEY, usd(USD)), KEY, TEAM));
    ledgers.relay!.set('*', 'cut');
    for (const { end } of calls) end(USD / 10n);
    await expect((async () => other.admit(TEAM, KEY, usd(3n * USD)))()).rejects.toThrow(
      LimitsUnavailableError,
    );
    ledgers.relay!.set('*', 'none');
    await eventually(async () => {
      try {
        await call(other, 3n * USD);
        return true;
      } catch (error) {
        if (error instanceof LimitsUnavailableError) return false;
        throw error;
      }
    });
    await Promise.all([written(other, 1), written(cut, 9)]);
    expect((await meterOf(database, rule)).spent).toBe(3n * USD + (9n * USD) / 10n);
  });

  it('a budget admits calls if LIMITS_WITHOUT_DATABASE=allow, but not for longer than KEY_CACHE_STALE_MS', async () => {
    const rule = await addRule(database, 'usd', 'month', 10n * USD);
    const at = await ledgers.behindRelay({ withoutDatabase: 'allow', staleMs: 40_000 });
    await call(at, USD);
    await written(at, 1);
    ledgers.relay!.set('*', 'cut');
    for (let i = 0; i < 20; i++) await call(at, USD);
    await eventually(() => {
      try {
        (at.admit(TEAM, KEY, usd(USD)) as Ticket).release();
      } catch (error) {
        return error instanceof LimitsUnavailableError;
      }
    });
    ledgers.relay!.set('*', 'none');
    await written(at, 21);
    await eventually(async () => (await meterOf(database, rule)).spent === 21n * USD);
    await eventually(() => at.ledger.exchange.failure === null);
    await rejection(() => at.admit(TEAM, KEY, usd(USD)));
  });

  it('a rate goes on with the part of this process; slots with those held, and with its part once they are void', async () => {
    await addRule(database, 'requests', 'minute', 40);
    await addRule(database, 'concurrent_requests', 'at_once', 10);
    const [at, other] = [await ledgers.behindRelay(), await ledgers.engine()];
    await at.admit(TEAM, KEY, usd(0n));
    const others: Ticket[] = [];
    for (let i = 0; i < 9; i++) others.push(await other.admit(TEAM, KEY, usd(0n)));
    await eventually(() => at.ledger.exchange.processes === 2);
    ledgers.relay!.set('*', 'cut');
    await eventually(() => at.ledger.exchange.failure !== null);
    const tickets: Ticket[] = [];
    let slots = 0;
    const fill = async () => {
      for (;;) tickets.push(await at.admit(TEAM, KEY, usd(0n)));
    };
    // The calls of the other have the rest.
    expect((await rejection(fill)).state.rule.resource).toBe('concurrent_requests');
    expect(tickets).toEqual([]);
    for (const ticket of others) ticket.settle({ usd: null, tokens: null });
    await eventually(async () => {
      const { state } = await rejection(fill);
      expect(state.rule.resource).toBe('concurrent_requests');
      return tickets.length > 0;
    });
    // Half of 10, with the one from before.
    expect((slots = tickets.length)).toBe(4);
    for (const ticket of tickets) ticket.settle({ usd: null, tokens: null });
    const rejected = await rejection(async () => {
      for (;;) {
        (await at.admit(TEAM, KEY, usd(0n))).settle({ usd: null, tokens: null });
        slots++;
      }
    });
    expect(rejected.state.rule.resource).toBe('requests');
    // Half of 40, with the one from before unless that is over a minute ago.
    expect([19, 20]).toContain(slots);
  });
});
