/** A UTC day by its first millisecond (Unix time). Days are reckoned in numbers, so that no time zone can bend them. */
export type Day = number;

export const DAY_MS = 86_400_000;

/** The day on which this instant lies, in Unix milliseconds. */
export function dayOf(ms: number): Day {
  return Math.floor(ms / DAY_MS) * DAY_MS;
}

/** The day of this instant and as many after it. */
export function daysFrom(ms: number, after: number): Day[] {
  return Array.from({ length: after + 1 }, (_, i) => dayOf(ms) + i * DAY_MS);
}

/** `request_log_20310131`; `copy` tells apart from a table of that name that is not ours. */
export function tableName(day: Day, copy = 0): string {
  const date = new Date(day).toISOString().split('T')[0]!;
  return `request_log_${date.replace(/\D/g, '')}${copy === 0 ? '' : `_${copy}`}`;
}

/** First instant of the day and of the next one as SQL, in which no session's time zone or date style has a say. */
export function sqlBounds(day: Day): readonly [string, string] {
  return [`to_timestamp(${day / 1_000})`, `to_timestamp(${(day + DAY_MS) / 1_000})`];
}
