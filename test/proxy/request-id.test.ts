import { validate, version } from 'uuid';
import { uuidV7 } from '../../src/platform/uuid-v7.js';
import { startOf } from '../../src/request-log/column-domains.js';

afterEach(() => jest.restoreAllMocks());

it('makes valid UUIDv7s of this very time, each larger than the last', () => {
  const before = Date.now();
  const ids = Array.from({ length: 20_000 }, uuidV7);
  expect(ids.every((id) => validate(id) && version(id) === 7)).toBe(true);
  expect(ids).toEqual([...new Set(ids)].sort());
  expect(startOf(ids[0]!)).toBeGreaterThanOrEqual(before);
});

it('goes on upwards while the clock stands still or is set back a little', () => {
  const now = Date.now() + 1_000_000;
  jest.spyOn(Date, 'now').mockReturnValue(now);
  const still = Array.from({ length: 10_000 }, uuidV7);
  jest.spyOn(Date, 'now').mockReturnValue(now - 900);
  const ids = [...still, ...Array.from({ length: 10 }, uuidV7)];
  expect(ids).toEqual([...new Set(ids)].sort());
  expect(startOf(ids[0]!)).toBe(now);
  // A full counter borrows from the milliseconds to come: at least 2,048 ids fit in each.
  expect(startOf(ids.at(-1)!)).toBeLessThanOrEqual(now + 5);
});

it('follows a clock that was ahead for a moment, with other ids', () => {
  const now = Date.now();
  const clock = jest.spyOn(Date, 'now').mockReturnValue(now);
  const first = Array.from({ length: 10_000 }, uuidV7);
  clock.mockReturnValue(now + 864_000_000);
  uuidV7();
  clock.mockReturnValue(now);
  const again = Array.from({ length: 10_000 }, uuidV7);
  expect(startOf(again[0]!)).toBe(now);
  expect(startOf(again.at(-1)!)).toBeLessThanOrEqual(now + 5);
  expect(again).toEqual([...again].sort());
  expect(new Set([...first, ...again]).size).toBe(20_000);
});

it('draws new bytes each time: no two ids share their random part', () => {
  const tails = Array.from({ length: 5_000 }, () => uuidV7().slice(19));
  expect(new Set(tails).size).toBe(tails.length);
});
