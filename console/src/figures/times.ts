/** Times as text, in a named time zone. */

/** "2026-11-22 15:04:05.123" */
export function exactTime(instant: Date, zone: string, { milliseconds = false } = {}): string {
  const text = new Intl.DateTimeFormat('sv-SE', {
    timeZone: zone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  }).format(instant);
  return milliseconds ? `${text}.${String(instant.getUTCMilliseconds()).padStart(3, '0')}` : text;
}

/** "Nov 22, 15:04" */
export function shortTime(instant: Date, zone: string): string {
  return new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }).format(instant);
}

/** "Nov 22, 2026" */
export function shortDate(instant: Date, zone: string): string {
  return new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    month: 'short',
    day: 'numeric',
    year: 'numeric',
  }).format(instant);
}

/** "Nov 22" */
export function dayOfYear(instant: Date, zone: string): string {
  return new Intl.DateTimeFormat('en-US', { timeZone: zone, month: 'short', day: 'numeric' }).format(instant);
}

/** "15:04" */
export function timeOfDay(instant: Date, zone: string): string {
  return new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }).format(instant);
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 365 * 86_400],
  ['month', 30 * 86_400],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'short' });

/** "3 min. ago", "in 5 days" */
export function relativeTime(instant: Date, now: Date): string {
  const seconds = (instant.getTime() - now.getTime()) / 1_000;
  if (Math.abs(seconds) < 1) return 'now';
  const [unit, size] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1];
  return relative.format(Math.trunc(seconds / size), unit);
}
