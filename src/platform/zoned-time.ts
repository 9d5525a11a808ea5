/** Days and clock times in a time zone. A zone is an IANA name such as Europe/Berlin. */

/** What a clock shows. */
export interface ClockTime {
  year: number;
  /** 1 to 12 */
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  millisecond: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** What a clock in the zone shows at an instant. */
export function clockAt(instant: Date, zone: string): ClockTime {
  let format = formats.get(zone);
  if (format === undefined) {
    const numeric = 'numeric' as const;
    format = new Intl.DateTimeFormat('en-US', {
      ...{ timeZone: zone, hourCycle: 'h23' },
      ...{ year: numeric, month: numeric, day: numeric, hour: numeric, minute: numeric, second: numeric },
    });
    formats.set(zone, format);
  }
  const parts = Object.fromEntries(
    format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]),
  );
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts;
  return { year, month, day, hour, minute, second, millisecond: instant.getUTCMilliseconds() };
}

/**
 * The instant at which a clock in the zone shows a time. Of a time that clocks skip, such as a midnight at which summer time
 * begins, the instant as far after the change; of one that they show twice, the later.
 *
 * @param asUtc the instant at which a clock in UTC shows it
 */
export function instantAt(asUtc: Date, zone: string): Date {
  const wanted = asUtc.getTime();
  // Clocks change by less than a day: the offset is the one of the day before or after.
  const [before, after] = [-1, 1].map((days) => wanted - offsetMs(new Date(wanted + days * DAY_MS), zone));
  const shown = [after!, before!].find((instant) => instant + offsetMs(new Date(instant), zone) === wanted);
  return new Date(shown ?? before!);
}

/** The instant at which a day begins in the zone. @param days after the day that contains the instant */
export function startOfDay(instant: Date, zone: string, days = 0): Date {
  const { year, month, day } = clockAt(instant, zone);
  return instantAt(new Date(Date.UTC(year, month - 1, day + days)), zone);
}

/** The instant at which the day, the week from Monday or the month of an instant began in the zone; null for all time. */
export function periodStart(
  period: 'day' | 'week' | 'month' | 'total',
  instant: Date,
  zone: string,
): Date | null {
  if (period === 'total') return null;
  const { year, month, day } = clockAt(instant, zone);
  const weekday = (new Date(Date.UTC(year, month - 1, day)).getUTCDay() + 6) % 7;
  return startOfDay(instant, zone, period === 'month' ? 1 - day : period === 'week' ? -weekday : 0);
}

/** How far clocks in the zone are ahead of UTC, in milliseconds. */
export function offsetMs(instant: Date, zone: string): number {
  const { year, month, day, hour, minute, second, millisecond } = clockAt(instant, zone);
  return Date.UTC(year, month - 1, day, hour, minute, second, millisecond) - instant.getTime();
}

const DAY_MS = 86_400_000;
