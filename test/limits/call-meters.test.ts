import { nanoOfCharge } from '../../src/limit-rules/usd.js';
import { HoldMeter } from '../../src/limits/ledger/hold-meter.js';
import { Meters } from '../../src/limits/ledger/meters.js';
import { Periods } from '../../src/limits/ledger/periods.js';
import { PostgresClock } from '../../src/limits/ledger/postgres-clock.js';
import { type LimitRule, setOf } from '../../src/limits/ledger/rule-set.js';
import { Ticket } from '../../src/limits/ledger/ticket.js';
import { dollarsOf } from '../../src/request-log/column-domains.js';
import { never } from '../support/never.js';

const DAY = 86_400_000;
const BOTH = { usd: 5, tokens: 7 };
/** What an exchange grants. */
const RESULT = {
  n: 0,
  free: '0',
  most: '0',
  spent: '0',
  limit: '0',
  low: false,
  recalled: false,
  loose: '0',
};
const SUBJECTS = { endUser: '', session: 'one' };

function rule(id: string, more: Partial<LimitRule> = {}): LimitRule {
  return {
    ...{ id, nr: '1', scope: 'key', owner: 'key', ownerId: 'o', ownerName: null, each: '', resource: 'usd' },
    ...{ period: 'day', timeZone: 'UTC', filter: '', providers: null, models: null, isHot: false },
    ...{ amount: 100n, mode: 'block', unpriced: 'reject', reservation: 'typical', removed: false },
    ...more,
  };
}

const usd = rule('usd');
const tokens = rule('tokens', { resource: 'tokens', period: 'month' });
const session = rule('session', { each: 'session', period: 'session' });
const warns = rule('warns', { mode: 'warn' });
const set = setOf([usd, tokens, session, warns])!;
let meters: Meters;

beforeEach(() => {
  const periods = new Periods();
  periods.add([
    ['day', 'UTC', 0, DAY, 0],
    ['day', 'UTC', DAY, 2 * DAY, DAY],
    ['month', 'UTC', 0, 31 * DAY, 0],
  ]);
  meters = new Meters(periods, new PostgresClock(), () => {});
});

const idsOf = (list: readonly HoldMeter[]) => list.map(({ rule: { id }, subject }) => `${id} ${subject}`);

it('are shared by calls of one session in one period, by what they take', () => {
  const first = meters.for(set, SUBJECTS, BOTH, 1)!;
  expect([idsOf(first.usd), idsOf(first.tokens)]).toEqual([['usd ', 'session one'], ['tokens ']]);
  expect(meters.for(set, SUBJECTS, BOTH, DAY - 1)).toBe(first);
  const other = meters.for(set, { ...SUBJECTS, session: 'two' }, BOTH, 1)!;
  expect(idsOf(other.usd)).toEqual(['usd ', 'session two']);
  expect(other.usd[0]).toBe(first.usd[0]);
  expect(meters.for(set, SUBJECTS, { usd: 0, tokens: 7 }, 1)!.usd).toEqual([]);
  expect(meters.for(set, SUBJECTS, { usd: 5, tokens: 0 }, 1)!.tokens).toEqual([]);
  expect(meters.for(set, SUBJECTS, BOTH, 1)).toBe(first);
});

it('are others in another period, for late calls too', () => {
  const first = meters.for(set, SUBJECTS, BOTH, 1)!;
  const next = meters.for(set, SUBJECTS, BOTH, DAY)!;
  expect(next.usd[0]!.period.starts).toBe(DAY);
  expect(next.tokens[0]).toBe(first.tokens[0]);
  expect(meters.for(set, SUBJECTS, BOTH, DAY - 1)!.usd[0]).toBe(first.usd[0]);
  expect(meters.for(set, SUBJECTS, BOTH, 2 * DAY)).toBeNull();
});

never('are others once one of them was forgotten, so that what is used is counted by one meter', () => {
  const now = performance.now();
  const first = meters.for(set, SUBJECTS, BOTH, 1)!;
  first.tokens[0]!.take(7, now + 10_000);
  meters.forget(now + 10_000);
  const next = meters.for(set, SUBJECTS, BOTH, 1)!;
  expect(next.tokens[0]).toBe(first.tokens[0]);
  expect(next.usd[0]).not.toBe(first.usd[0]);
  expect(meters.find('usd', '', 0)).toBe(next.usd[0]);
});

never('count exactly what a number holds, and do not use what they are granted beyond that', () => {
  const [meter] = meters.for(set, SUBJECTS, BOTH, 1)!.usd;
  const grant = (total: string) => meter!.apply({ ...RESULT, total }, 0);
  meter!.entry(0, 0);
  grant(String(2n ** 60n));
  expect(meter!.available(0)).toBe(Number.MAX_SAFE_INTEGER);
  meter!.take(1, 0);
  expect(meter!.available(0)).toBe(Number.MAX_SAFE_INTEGER - 1);
  // What Postgres is told to be held: the rest is free again.
  expect(meter!.entry(0, 0)).toMatchObject({ used: '1', kept: '9007199254740991' });
  // Postgres takes no number with an exponent, and no larger bigint.
  for (let i = 0; i < 2_000; i++) meter!.take(Number.MAX_SAFE_INTEGER, 0);
  expect(meter!.entry(0, 0)).toMatchObject({ used: '9007199254740991' });
});

never.each([
  ['less', 4],
  ['more', 25],
])('give up what a call has cost, where it was %s than it had reserved', (_, cost: number) => {
  const [meter] = meters.for(set, SUBJECTS, BOTH, 1)!.usd;
  meter!.entry(0, 0);
  meter!.apply({ ...RESULT, total: '100' }, 0);
  meter!.take(10, 0);
  meter!.ended(10, 0);
  meter!.settled(10, cost, 0);
  expect(meter!.entry(0, 0)).toMatchObject({ used: '0', kept: String(100 - cost) });
});

it('are filled in one exchange once one of them is low', () => {
  const of = meters.for(set, SUBJECTS, BOTH, 1)!;
  const [own, spent] = of.usd;
  const requested: string[] = [];
  const take = () =>
    new Ticket('id', null, '', of, BOTH, null).take(0, ({ rule: { id } }) => requested.push(id));
  for (const [meter, total] of [
    [own, '100'],
    [spent, '100'],
    [of.tokens[0], '35'],
  ] as const) {
    meter!.entry(0, 0);
    meter!.apply({ ...RESULT, total }, 0);
  }
  take();
  expect(requested).toEqual([]);
  // Of USD, 35 are left where 65 were used, more than half.
  own!.take(55, 0);
  take();
  expect(requested).toEqual([]);
  // Of USD, 3 are left where 97 were used. Of tokens, 14 are left where 21 were used, enough to wait for others.
  own!.take(27, 0);
  take();
  expect(requested).toEqual(['usd', 'tokens']);
});

never.each([
  [0, '0.000000000'],
  [1, '0.000000001'],
  [1_234_567_890, '1.234567890'],
  [Number.MAX_SAFE_INTEGER, '9007199.254740991'],
])('charge %d billionths of a dollar as %s', (nano, text) => {
  expect(dollarsOf(nano)).toBe(text);
  expect(nanoOfCharge(text)).toBe(nano);
});

never('read a charge of nothing, and charge nothing that is no count', () => {
  expect(nanoOfCharge('0')).toBe(0);
  for (const nano of [null, undefined, -1, 0.5, NaN, Infinity, '1']) expect(dollarsOf(nano)).toBeNull();
});
