import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { LimitsUnavailableError } from '../../src/limits/ledger/limit-errors.js';
import { SLOT_MS } from '../../src/limits/ledger/rate-meter.js';
import { LedgerService } from '../../src/limits/ledger/ledger.service.js';
import type { TestDatabase } from '../support/database.js';
import { eventually, soon } from '../support/eventually.js';
import { never } from '../support/never.js';
import { setPatience } from '../support/patience.js';
import { Ledgers, usd, written } from './ledgers.js';
import { type LimitedGateway, startLimited } from './limited-gateway.js';
import { addRule, holdsOf, KEY, meterOf, TEAM, USD } from './rules.js';

/** The slot of a rate that Postgres is in. */
const SLOT_NOW = `SELECT floor(extract(epoch FROM clock_timestamp()) * 1000 / ${SLOT_MS})::int AS slot`;

/** Keeps the meters of a rule locked, as a session does that stands still in a transaction. */
async function lock(database: TestDatabase, rule: string): Promise<{ end: () => Promise<void> }> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query('BEGIN');
  await client.query(
    'INSERT INTO limit_meter (rule_id, window_start) VALUES ($1, to_timestamp(0)) ON CONFLICT DO NOTHING',
    [rule],
  );
  await client.query('SELECT FROM limit_meter WHERE rule_id = $1 FOR UPDATE', [rule]);
  return { end: () => client.end() };
}

describe('the ledger', () => {
  let ledgers: Ledgers;
  let database: TestDatabase;
  beforeEach(async () => {
    ledgers = await Ledgers.start();
    database = ledgers.database;
  });
  afterEach(() => {
    jest.restoreAllMocks();
    return ledgers.stop();
  });

  it.each([
    ['a budget', 'usd', 'total', USD],
    ['a rate', 'requests', 'minute', 100n],
  ])('admits the calls of others while %s is locked, and those of it afterwards', async (_, ...rule) => {
    const locked = await addRule(database, ...rule);
    const other = uuidv7();
    await addRule(database, 'usd', 'total', USD, { scope_id: other });
    await addRule(database, 'requests', 'minute', 100, { scope_id: other });
    const at = await ledgers.engine();
    const session = await lock(database, locked);
    const { counts } = at.ledger.exchange;
    const before = counts.ok;
    const waiting = at.admit(TEAM, KEY, usd(1n));
    for (let i = 0; i < 3; i++) at.begin(await at.admit(TEAM, other, usd(1n)), other, TEAM).end(1n);
    await written(at, 3);
    await eventually(() => counts.ok > before + 1);
    expect(counts.failed).toBe(0);
    expect(at.ledger.waitingCalls).toBe(1);
    await session.end();
    (await waiting).release();
  });

  it('states to a meter that was locked what it has missed', async () => {
    const rule = await addRule(database, 'usd', 'total', 10n * USD);
    const at = await ledgers.engine();
    const ticket = await at.admit(TEAM, KEY, usd(USD));
    const session = await lock(database, rule);
    ticket.release();
    // It asks for what was returned meanwhile; this is skipped too.
    const waiting = at.admit(TEAM, KEY, usd(10n * USD));
    const before = at.ledger.exchange.counts.ok;
    await eventually(() => at.ledger.exchange.counts.ok > before + 1);
    await session.end();
    (await waiting).release();
    await eventually(async () => (await meterOf(database, rule)).held === 0n);
  });

  it('rejects a call that has waited too long, and stops while the meter is still locked', async () => {
    const restore = setPatience(0.1, 'a call that waits for limits', 'locked meters at a stop');
    const rule = await addRule(database, 'usd', 'total', USD);
    const at = await ledgers.engine();
    const session = await lock(database, rule);
    const error: unknown = await Promise.resolve(at.admit(TEAM, KEY, usd(1n))).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(LimitsUnavailableError);
    expect((error as LimitsUnavailableError).reason).toContain('in 10 seconds');
    expect(at.ledger.waitingCalls).toBe(0);
    await ledgers.stopEngine(at);
    await session.end();
    restore();
  });

  never.each([
    ['a key', 'exchange', 0],
    ['all replicas', 'hotExchange', 2],
  ] as const)(
    'returns what it holds of a budget of %s when it stops, although the meter is locked at first',
    async (_, name, rank) => {
      const rule = await addRule(database, 'usd', 'total', USD, { rank });
      const at = await ledgers.engine();
      (await at.admit(TEAM, KEY, usd(1n))).release();
      expect(await holdsOf(database, rule)).toBeGreaterThan(0n);
      const session = await lock(database, rule);
      const { counts } = at.ledger[name];
      const stopped = jest.spyOn(at.ledger, 'stopped');
      const stopping = ledgers.stopEngine(at);
      await eventually(() => stopped.mock.calls.length > 0);
      // One may have been under way; the next one is of the stop, and finds the meter locked.
      const before = counts.ok;
      await Promise.race([eventually(() => counts.ok > before + 1), stopping]);
      await session.end();
      await stopping;
      expect([await holdsOf(database, rule), (await meterOf(database, rule)).held]).toEqual([0n, 0n]);
    },
  );

  it('returns what it has leased of a rate, although the meter is locked at first', async () => {
    const rule = await addRule(database, 'requests', 'minute', 60);
    const at = await ledgers.engine();
    const { counts } = at.ledger.exchange;
    const used = async () => {
      const text = 'SELECT sum(used)::int AS used FROM limit_slot WHERE rule_id = $1';
      return (await database.query<{ used: number }>(text, [rule]))[0]!.used;
    };
    const ticket = await at.admit(TEAM, KEY, usd(1n));
    const session = await lock(database, rule);
    expect(await used()).toBeGreaterThan(0);
    ticket.release();
    const [lease] = await database.query<{ slot: number }>(SLOT_NOW);
    await eventually(async () => (await database.query<{ slot: number }>(SLOT_NOW))[0]!.slot > lease!.slot);
    // The second one from now on begins after the slot, and returns what is left of it.
    const before = counts.ok;
    await eventually(() => counts.ok > before + 1);
    await session.end();
    await eventually(async () => (await used()) === 0);
  });
});

describe('the gateway', () => {
  let limited: LimitedGateway;
  beforeAll(async () => {
    limited = await startLimited();
  });
  afterAll(() => limited.stop());

  never('forgets a call that waits once its client disconnects, and does not forward it', async () => {
    const { postern, provider } = limited;
    const ledger = postern.gateway.app.get(LedgerService);
    const { id, key } = await limited.issue({ budgets: [{ usd: '1', period: 'total' }] });
    const [rule] = await postern.database.query<{ id: string }>(
      'SELECT id FROM limit_rule WHERE scope_id = $1',
      [id],
    );
    const session = await lock(postern.database, rule!.id);
    const requests = provider.requests.length;
    const leaving = new AbortController();
    const call = fetch(`${postern.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm' }),
      signal: leaving.signal,
    }).catch((error: unknown) => error);
    await eventually(() => ledger.waitingCalls === 1);
    leaving.abort();
    await call;
    await soon(() => Promise.resolve(ledger.waitingCalls === 0), 100);
    await session.end();
    expect((await limited.send(key, { model: 'm', max_tokens: 1 })).status).toBe(200);
    expect(provider.requests).toHaveLength(requests + 1);
  });
});
