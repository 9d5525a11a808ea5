import { parseRange, parseTime } from '../../src/cli/times.js';

const NOW = new Date('2026-03-31T13:14:15.678Z');
const past = (text: string) => parseTime(text, -1, '--from', NOW);
const future = (text: string) => parseTime(text, 1, '--expires-at', NOW);

it.each([
  ['30m', '2026-03-31T12:44:15.678Z'],
  ['24h', '2026-03-30T13:14:15.678Z'],
  ['7d', '2026-03-24T13:14:15.678Z'],
  ['2w', '2026-03-17T13:14:15.678Z'],
  // February has no 31st.
  ['1M', '2026-02-28T13:14:15.678Z'],
  ['1y', '2025-03-31T13:14:15.678Z'],
  ['now', '2026-03-31T13:14:15.678Z'],
  ['today', '2026-03-31T00:00:00.000Z'],
  ['yesterday', '2026-03-30T00:00:00.000Z'],
  ['2026-11-15', '2026-11-15T00:00:00.000Z'],
  ['2026-11-15T06:07', '2026-11-15T06:07:00.000Z'],
  ['2026-11-15 06:07:08', '2026-11-15T06:07:08.000Z'],
  ['2026-11-15T06:07:08+02:00', '2026-11-15T04:07:08.000Z'],
  ['2026-11-15T06:07:08.9Z', '2026-11-15T06:07:08.900Z'],
])('--from %s is %s', (text, iso) => {
  expect(past(text)).toBe(iso);
});

it.each([
  ['30d', '2026-04-30T13:14:15.678Z'],
  ['6M', '2026-09-30T13:14:15.678Z'],
  ['tomorrow', '2026-04-01T00:00:00.000Z'],
  ['2030-01-31', '2030-01-31T00:00:00.000Z'],
])('--expires-at %s is %s', (text, iso) => {
  expect(future(text)).toBe(iso);
});

it.each([
  '',
  'soon',
  '7',
  '7D',
  '-7d',
  '1.5h',
  '2026-02-30',
  '2026-13-01',
  '2026-11-15T25:00Z',
  '15.11.2026',
  'constructor',
  '999999y',
])('rejects %j and names the forms that it accepts', (text) => {
  expect(() => past(text)).toThrow(
    /^--from must be a duration .*7d.*, today, yesterday, a date \(2030-01-31\), or a time \(2030-01-31T12:00:00Z\); days begin at 00:00 UTC$/,
  );
  expect(() => future(text)).toThrow(/^--expires-at must be a duration from now \(24h, 30d/);
});

it('rejects a range that ends before it begins', () => {
  expect(() => parseRange({ from: 'today', to: 'yesterday' })).toThrow(
    /^--from \(.*\) must be before --to \(.*\)$/,
  );
  expect(Object.keys(parseRange({ from: 'yesterday', to: 'today' }))).toEqual(['from', 'to']);
});
