/** Arithmetic with days in a time zone. Instants are Dates; a zone is an IANA name such as Europe/Berlin. */

export type Interval = 'minute' | 'half_hour' | 'hour' | 'day' | 'week' | 'month';

export const MINUTE_MS = 60_000;
export const HALF_HOUR_MS = 30 * MINUTE_MS;
export const HOUR_MS = 2 * HALF_HOUR_MS;
export const DAY_MS = 24 * HOUR_MS;
/** Of the intervals that are always as long. */
const LENGTHS = { minute: MINUTE_MS, half_hour: HALF_HOUR_MS, hour: HOUR_MS } as const;

export interface CivilTime {
  year: number;
  /** 1 to 12 */
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** What a clock in the zone shows at an instant. */
export function civilOf(instant: Date, zone: string): CivilTime {
  let format = formats.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    formats.set(zone, format);
  }
  const parts = Object.fromEntries(
    format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]),
  );
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts;
  return { year, month, day, hour, minute, second };
}

/**
 * The instant at which a clock in the zone shows this; of a skipped hour, the instant as far after the change, and of one
 * that is shown twice, the later.
 */
export function instantOf(
  civil: Partial<CivilTime> & Pick<CivilTime, 'year' | 'month' | 'day'>,
  zone: string,
): Date {
  const wanted = Date.UTC(
    civil.year,
    civil.month - 1,
    civil.day,
    civil.hour ?? 0,
    civil.minute ?? 0,
    civil.second ?? 0,
  );
  // Clocks change by less than a day: the offset is the one of the day before or after.
  const [before = wanted, after = wanted] = [-DAY_MS, DAY_MS].map(
    (away) => wanted - offsetMs(new Date(wanted + away), zone),
  );
  const shown = [after, before].find((instant) => instant + offsetMs(new Date(instant), zone) === wanted);
  return new Date(shown ?? before);
}

/** How far the zone's clock is ahead of UTC. */
function offsetMs(instant: Date, zone: string): number {
  const { year, month, day, hour, minute, second } = civilOf(instant, zone);
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(instant.getTime() / 1000) * 1000;
}

/** The beginning of the period that contains the instant. Weeks begin on Monday. */
export function startOf(interval: Interval, instant: Date, zone: string): Date {
  if (interval === 'minute' || interval === 'half_hour') {
    const length = LENGTHS[interval];
    return new Date(Math.floor(instant.getTime() / length) * length);
  }
  const civil = civilOf(instant, zone);
  const { year, month, day } = civil;
  switch (interval) {
    case 'hour': {
      const offset = offsetMs(instant, zone);
      return new Date(Math.floor((instant.getTime() + offset) / HOUR_MS) * HOUR_MS - offset);
    }
    case 'day':
      return instantOf({ year, month, day }, zone);
    case 'week': {
      const weekday = (new Date(Date.UTC(year, month - 1, day)).getUTCDay() + 6) % 7;
      return instantOf({ year, month, day: day - weekday }, zone);
    }
    case 'month':
      return instantOf({ year, month, day: 1 }, zone);
  }
}

/** The beginning of the period that is `count` periods later. */
export function addPeriods(interval: Interval, start: Date, count: number, zone: string): Date {
  if (interval in LENGTHS)
    return new Date(start.getTime() + count * LENGTHS[interval as keyof typeof LENGTHS]);
  const { year, month, day, hour, minute, second } = civilOf(start, zone);
  const days = interval === 'day' ? count : interval === 'week' ? 7 * count : 0;
  const months = interval === 'month' ? count : 0;
  return instantOf({ year, month: month + months, day: day + days, hour, minute, second }, zone);
}

/** The periods that overlap [from, to), under the names that the API gives them. */
export function periodsBetween(
  from: Date,
  to: Date,
  interval: Interval,
  zone: string,
): { name: string; start: Date }[] {
  const periods = [];
  let start = startOf(interval, from, zone);
  for (let index = 0; start < to && index < 5_000; index++) {
    periods.push({ name: periodName(start, interval, zone), start });
    start = addPeriods(interval, start, 1, zone);
  }
  return periods;
}

function periodName(start: Date, interval: Interval, zone: string): string {
  if (interval in LENGTHS) return start.toISOString().replace(/:\d\d\.\d{3}Z$/, ':00Z');
  const { year, month, day } = civilOf(start, zone);
  const text = `${year}-${twoDigits(month)}`;
  return interval === 'month' ? text : `${text}-${twoDigits(day)}`;
}

export function twoDigits(number: number): string {
  return String(number).padStart(2, '0');
}
