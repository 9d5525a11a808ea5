import { clockAt, instantAt, offsetMs, startOfDay } from '../platform/zoned-time.js';
import { CliError } from './cli-error.js';

/** Milliseconds of the units that have a fixed length. */
const UNITS: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const DAYS: Readonly<Record<string, number>> = { yesterday: -1, today: 0, tomorrow: 1 };

/** A date, or a date and time; without a zone in that of the command. */
const ABSOLUTE = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/;

/**
 * The time that people mean, in ISO 8601.
 *
 * @param towards -1: `7d` is seven days ago; 1: in seven days
 * @param option its name, for the error
 * @param zone in which days begin and times without a zone are meant: `api.zone()`
 */
export function parseTime(
  input: string,
  towards: 1 | -1,
  option: string,
  zone: string,
  now = new Date(),
): string {
  const time = relative(input, towards, now) ?? namedDay(input, zone, now) ?? absolute(input, zone);
  if (time !== null && !Number.isNaN(time.getTime()) && /^\d{4}-/.test(time.toISOString()))
    return time.toISOString();
  const forms =
    towards === -1
      ? 'a duration up to now (30m, 24h, 7d, 2w, 1M), today, yesterday, a date (2030-01-31), or a time (2030-01-31T12:00:00Z)'
      : 'a duration from now (24h, 30d, 2w, 6M, 1y), a date (2030-01-31), or a time (2030-01-31T12:00:00Z)';
  throw new CliError(`${option} must be ${forms}; days begin at 00:00 ${zone}`);
}

/** The range of `--from` and `--to`. @param zone as for `parseTime` */
export function parseRange(
  { from, to }: { from?: string; to?: string },
  zone: string,
): { from?: string; to?: string } {
  const range = {
    ...(from !== undefined && { from: parseTime(from, -1, '--from', zone) }),
    ...(to !== undefined && { to: parseTime(to, -1, '--to', zone) }),
  };
  if (range.from !== undefined && range.to !== undefined && range.from >= range.to)
    throw new CliError(`--from (${range.from}) must be before --to (${range.to})`);
  return range;
}

function relative(input: string, towards: 1 | -1, now: Date): Date | null {
  const [, amount, unit] = /^(\d{1,6})([mhdwMy])$/.exec(input) ?? [];
  if (amount === undefined || unit === undefined) return null;
  const count = towards * Number(amount);
  if (unit === 'M' || unit === 'y') return addMonths(now, unit === 'y' ? 12 * count : count);
  return new Date(now.getTime() + count * UNITS[unit]!);
}

/** The same day of another month, or its last day if it has no such day. */
function addMonths(at: Date, months: number): Date {
  const moved = new Date(at);
  moved.setUTCMonth(at.getUTCMonth() + months);
  if (moved.getUTCDate() !== at.getUTCDate()) moved.setUTCDate(0);
  return moved;
}

function namedDay(input: string, zone: string, now: Date): Date | null {
  if (input === 'now') return now;
  const offset = Object.hasOwn(DAYS, input) ? DAYS[input] : undefined;
  return offset === undefined ? null : startOfDay(now, zone, offset);
}

function absolute(input: string, zone: string): Date | null {
  const match = ABSOLUTE.exec(input);
  if (match === null) return null;
  const iso = input.replace(' ', 'T');
  const isZoned = match[1] !== undefined;
  const time = new Date(iso.length > 10 && !isZoned ? `${iso}Z` : iso);
  // Date accepts a 31st of February as the 3rd of March.
  const day = new Date(`${input.slice(0, 10)}T00:00:00Z`);
  if (Number.isNaN(day.getTime()) || !day.toISOString().startsWith(input.slice(0, 10))) return null;
  return isZoned || Number.isNaN(time.getTime()) ? time : instantAt(time, zone);
}

/** The zone in which this run prints times. */
let shownZone = 'UTC';

/** Prints all times of this run in a zone. */
export function showTimesIn(zone: string): void {
  shownZone = zone;
}

/** An ISO 8601 time as `2026-11-22 06:27:13 UTC`, with the zone in which times are shown. */
export function exactTime(iso: string): string {
  return `${shownClock(iso).slice(0, 19).replace('T', ' ')} ${shownZone}`;
}

/** An ISO 8601 time without its fraction, with the distance of the zone from UTC. */
export function shortTime(iso: string | null): string | null {
  if (iso === null) return null;
  const offset = Math.round(offsetMs(new Date(iso), shownZone) / 60_000);
  const [hours, minutes] = [Math.trunc(Math.abs(offset) / 60), Math.abs(offset) % 60];
  const distance = `${offset < 0 ? '-' : '+'}${twoDigits(hours)}:${twoDigits(minutes)}`;
  return shownClock(iso).slice(0, 19) + (shownZone === 'UTC' ? 'Z' : distance);
}

/** An ISO 8601 time as `2026-11-22 06:27`. */
export function minuteTime(iso: string | null): string | null {
  return iso && shownClock(iso).slice(0, 16).replace('T', ' ');
}

/** What a clock shows at a time, in ISO 8601 without a zone. */
function shownClock(iso: string): string {
  const { year, month, day, hour, minute, second } = clockAt(new Date(iso), shownZone);
  return new Date(Date.UTC(year, month - 1, day, hour, minute, second)).toISOString();
}

function twoDigits(number: number): string {
  return String(number).padStart(2, '0');
}

/** A number of seconds in the largest unit that divides it: `1 hour`, `90 seconds`. */
export function duration(seconds: number): string {
  const [unit, length] = LENGTHS.find(([, length]) => seconds % length === 0)!;
  const count = seconds / length;
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

const LENGTHS: readonly [unit: string, seconds: number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];
