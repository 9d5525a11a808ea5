import { exactTime, minuteTime, parseRange, parseTime, shortTime, showTimesIn } from '../../src/cli/times.js';

const NOW = new Date('2026-03-31T13:14:15.678Z');
const past = (text: string) => parseTime(text, -1, '--from', 'UTC', NOW);
const future = (text: string) => parseTime(text, 1, '--expires-at', 'UTC', NOW);

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
  expect(() => parseRange({ from: 'today', to: 'yesterday' }, 'UTC')).toThrow(
    /^--from \(.*\) must be before --to \(.*\)$/,
  );
  expect(Object.keys(parseRange({ from: 'yesterday', to: 'today' }, 'UTC'))).toEqual(['from', 'to']);
});

it.each([
  ['Europe/Berlin', '2026-11-01', '2026-10-31T23:00:00.000Z'],
  ['Europe/Berlin', '2026-07-01T12:00', '2026-07-01T10:00:00.000Z'],
  ['Europe/Berlin', '2026-07-01T12:00Z', '2026-07-01T12:00:00.000Z'],
  // Clocks had skipped this time, and showed this one twice.
  ['Europe/Berlin', '2026-03-29T02:30', '2026-03-29T01:30:00.000Z'],
  ['Europe/Berlin', '2026-10-25T02:30', '2026-10-25T01:30:00.000Z'],
  ['America/New_York', 'today', '2026-03-31T04:00:00.000Z'],
  ['Pacific/Auckland', 'today', '2026-03-31T11:00:00.000Z'],
  ['Pacific/Auckland', 'yesterday', '2026-03-30T11:00:00.000Z'],
  ['Asia/Kathmandu', '2026-11-15', '2026-11-14T18:15:00.000Z'],
  // Summer time begins at midnight: there is no 00:00.
  ['America/Santiago', '2026-09-06', '2026-09-06T04:00:00.000Z'],
  ['America/Santiago', '24h', '2026-03-30T13:14:15.678Z'],
])('in %s, %s is %s', (zone, text, iso) => {
  expect(parseTime(text, -1, '--from', zone, NOW)).toBe(iso);
});

it('prints times in the zone of the command', () => {
  const at = '2026-07-01T22:04:05.678Z';
  showTimesIn('Asia/Kolkata');
  try {
    expect([minuteTime(at), exactTime(at), shortTime(at), minuteTime(null)]).toEqual([
      '2026-07-02 03:34',
      '2026-07-02 03:34:05 Asia/Kolkata',
      '2026-07-02T03:34:05+05:30',
      null,
    ]);
    showTimesIn('America/St_Johns');
    expect(shortTime(at)).toBe('2026-07-01T19:34:05-02:30');
  } finally {
    showTimesIn('UTC');
  }
  expect([minuteTime(at), exactTime(at), shortTime(at)]).toEqual([
    '2026-07-01 22:04',
    '2026-07-01 22:04:05 UTC',
    '2026-07-01T22:04:05Z',
  ]);
});
