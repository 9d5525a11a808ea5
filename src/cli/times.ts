import { CliError } from './cli-error.js';

/** Milliseconds of the units that have a fixed length. */
const UNITS: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const DAY_MS = 86_400_000;
const DAYS: Readonly<Record<string, number>> = { yesterday: -1, today: 0, tomorrow: 1 };

/** A date, or a date and time; without a zone in UTC, as everything that Postern prints. */
const ABSOLUTE = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/;

/**
 * The time that people mean, in ISO 8601.
 *
 * @param towards -1: `7d` is seven days ago; 1: in seven days
 * @param option its name, for the error
 */
export function parseTime(input: string, towards: 1 | -1, option: string, now = new Date()): string {
  const time = relative(input, towards, now) ?? namedDay(input, now) ?? absolute(input);
  if (time !== null && !Number.isNaN(time.getTime()) && /^\d{4}-/.test(time.toISOString()))
    return time.toISOString();
  const forms =
    towards === -1
      ? 'a duration up to now (30m, 24h, 7d, 2w, 1M), today, yesterday, a date (2030-01-31), or a time (2030-01-31T12:00:00Z)'
      : 'a duration from now (24h, 30d, 2w, 6M, 1y), a date (2030-01-31), or a time (2030-01-31T12:00:00Z)';
  throw new CliError(`${option} must be ${forms}; days begin at 00:00 UTC`);
}

/** The range of `--from` and `--to`. */
export function parseRange({ from, to }: { from?: string; to?: string }): { from?: string; to?: string } {
  const range = {
    ...(from !== undefined && { from: parseTime(from, -1, '--from') }),
    ...(to !== undefined && { to: parseTime(to, -1, '--to') }),
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

function namedDay(input: string, now: Date): Date | null {
  if (input === 'now') return now;
  const offset = Object.hasOwn(DAYS, input) ? DAYS[input] : undefined;
  if (offset === undefined) return null;
  return new Date(Math.floor(now.getTime() / DAY_MS) * DAY_MS + offset * DAY_MS);
}

function absolute(input: string): Date | null {
  const match = ABSOLUTE.exec(input);
  if (match === null) return null;
  const iso = input.replace(' ', 'T');
  const time = new Date(iso.length > 10 && match[1] === undefined ? `${iso}Z` : iso);
  // Date accepts a 31st of February as the 3rd of March.
  const day = new Date(`${input.slice(0, 10)}T00:00:00Z`);
  return Number.isNaN(day.getTime()) || !day.toISOString().startsWith(input.slice(0, 10)) ? null : time;
}

/** An ISO 8601 time as `2026-11-22 06:27:13 UTC`. */
export function utcTime(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}

/** An ISO 8601 time without its fraction. */
export function shortTime(iso: string | null): string | null {
  return iso && iso.replace(/\.\d+Z$/, 'Z');
}

/** An ISO 8601 time as `2026-11-22 06:27`, in UTC. */
export function minuteTime(iso: string | null): string | null {
  return iso && `${iso.slice(0, 10)} ${iso.slice(11, 16)}`;
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
