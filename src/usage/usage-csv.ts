import { stringify } from 'csv-stringify/sync';
import { clockAt } from '../platform/zoned-time.js';
import { isInterval, TAG_GROUP, type UsageGroup } from './usage-groups.js';
import type { UsageView } from './usage.schema.js';

/** What a table of usage counts. */
export interface TableRange {
  /** Absent: since the first call. */
  from?: Date | undefined;
  to: Date;
  /** IANA name of the time zone of days, weeks and months. */
  zone: string;
}

type Cell = string | number | null | undefined;
type Column = readonly [name: string, value: (row: UsageView) => Cell];

/** Input tokens that were neither read from a cache nor written to one. */
function uncached({
  prompt_tokens: all,
  cached_tokens: read,
  cache_write_tokens: written,
}: UsageView): number {
  return all - read - written;
}

/** The figures of a table; tokens by what they cost, each in one column. */
const FIGURES: readonly Column[] = [
  ['cost_usd', (row) => row.cost_usd],
  ['unknown_calls', (row) => row.unknown_calls],
  ['unknown_low_usd', (row) => row.unknown_low_usd],
  ['unknown_high_usd', (row) => row.unknown_high_usd],
  ['unbounded_calls', (row) => row.unbounded_calls],
  ['saved_usd', (row) => row.saved_usd],
  ['calls', (row) => row.calls],
  ['errors', (row) => row.errors],
  ['unpriced_calls', (row) => row.unpriced_calls],
  ['calls_without_tokens', (row) => row.calls_without_tokens],
  ['uncached_input_tokens', uncached],
  ['cached_input_tokens', (row) => row.cached_tokens],
  ['cache_write_tokens', (row) => row.cache_write_tokens],
  ['output_tokens', (row) => row.completion_tokens],
  ['reasoning_tokens', (row) => row.reasoning_tokens],
  ['total_tokens', (row) => row.total_tokens],
  ['p50_ms', (row) => row.p50_ms],
  ['p95_ms', (row) => row.p95_ms],
];

/** Rows in one step: stringifying more would keep calls waiting. */
const STEP = 500;

/**
 * A table of usage as comma-separated values: RFC 4180 except for the plain line feed; amounts with all their digits, what is
 * unknown empty. A cell that a spreadsheet would run as a formula gets a `'` in front.
 *
 * @param before columns that are the same in each row
 * @returns the head, then some rows at a time
 */
export function* usageCsv(
  rows: readonly UsageView[],
  groups: readonly UsageGroup[],
  range: TableRange,
  before: readonly (readonly [name: string, value: string | null])[] = [],
): Generator<string> {
  const columns: readonly Column[] = [
    ...before.map(([name, value]): Column => [name, () => value]),
    ...timesOf(groups, range),
    ...groups.flatMap((group) => columnsOf(group, groups)),
    ...FIGURES,
  ];
  yield stringify([columns.map(([name]) => name)]);
  for (let at = 0; at < rows.length; at += STEP)
    yield stringify(
      rows.slice(at, at + STEP).map((row) => columns.map(([, value]) => value(row))),
      { escape_formulas: true },
    );
}

function timesOf(groups: readonly UsageGroup[], { from, to, zone }: TableRange): readonly Column[] {
  const month = groups.some(isInterval) ? undefined : monthOf({ from, to, zone });
  return [
    ['time_zone', () => zone],
    ['from', () => from?.toISOString()],
    ['to', () => to.toISOString()],
    ...(month === undefined ? [] : [['month', () => month] as const]),
  ];
}

/** The month that a range lies in; undefined if it is in several. */
function monthOf({ from, to, zone }: TableRange): string | undefined {
  if (from === undefined) return undefined;
  const [first, last] = [dayIn(from, zone), dayIn(lastOf(from, to), zone)];
  return first.slice(0, 7) === last.slice(0, 7) ? first.slice(0, 7) : undefined;
}

function columnsOf(group: UsageGroup, groups: readonly UsageGroup[]): readonly Column[] {
  if (group === 'team')
    return [
      ['team', (row) => row.team],
      ['team_id', (row) => row.team_id],
    ];
  if (group === 'key')
    return [
      // The name of a key is unique in its team only.
      ...(groups.includes('team') ? [] : [['team', (row: UsageView) => row.team] as const]),
      ['key', (row) => row.key],
      ['key_id', (row) => row.key_id],
    ];
  const tag = TAG_GROUP.exec(group)?.[1];
  return [[group, (row) => (tag === undefined ? row[group as 'model'] : row.tags?.[tag])]];
}

/**
 * The name of its file, by the days of its time zone: two tables of different ranges or groups have different names.
 *
 * @param what words between hyphens
 */
export function fileName({ from, to, zone }: TableRange, what: readonly string[]): string {
  const first = from === undefined ? 'start' : edge(from, zone);
  // The end is the first day that is not in it.
  const last = isMidnight(to, zone) ? dayIn(lastOf(from, to), zone) : edge(to, zone);
  return (
    [`postern-usage-${first}-to-${last}`, ...what.map((word) => word.replace(/[^\w.-]+/g, '_'))].join('-') +
    '.csv'
  );
}

function edge(time: Date, zone: string): string {
  if (isMidnight(time, zone)) return dayIn(time, zone);
  const { hour, minute, second } = clockAt(time, zone);
  return `${dayIn(time, zone)}T${[hour, minute, second].map(twoDigits).join('')}`;
}

function isMidnight(time: Date, zone: string): boolean {
  const { hour, minute, second, millisecond } = clockAt(time, zone);
  return hour + minute + second + millisecond === 0;
}

/** The last instant of a range, which may be empty. */
function lastOf(from: Date | undefined, to: Date): Date {
  return new Date(Math.max(to.getTime() - 1, from?.getTime() ?? -Infinity));
}

function dayIn(time: Date, zone: string): string {
  const { year, month, day } = clockAt(time, zone);
  return `${String(year).padStart(4, '0')}-${twoDigits(month)}-${twoDigits(day)}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}
