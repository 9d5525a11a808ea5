import { ServiceError } from '../errors/service-error.js';
import type { PageRequest } from '../database/page.js';
import { TEAM_GROUPS } from '../teams/team-groups.js';
import { GROUPED_ANNOTATIONS, KEY_ANNOTATIONS } from '../keys/key-annotations.js';
import { type Conditions, type RequestFilter, SESSION_COLUMN } from '../requests/request-query.js';
import { type Measure, MEASURES } from './measures.js';
import {
  INTERVALS,
  type Interval,
  isInterval,
  PLAIN_GROUPS,
  SORTS,
  TAG_GROUP,
  type UsageGroup,
  type UsageSort,
} from './usage-groups.js';
import type { UsageSource } from './usage-source.js';
import { percentileSql } from './latency.js';

/** What to read. */
export type UsageRequest = RequestFilter &
  PageRequest & {
    sort?: UsageSort;
    /** Only the groups of the values of the first group that is no period with the largest sums: so many of these. */
    series?: number;
  };

/** Groups under the names of memberOf(), sums under their own. */
export type UsageSqlRow = Record<string, unknown> & { latency: number[] };

/** How a period is shown: days and longer by their first day in the time zone, hours by their start in UTC. */
const SHOWN: Record<Interval, string> = {
  month: 'YYYY-MM',
  week: 'YYYY-MM-DD',
  day: 'YYYY-MM-DD',
  hour: 'YYYY-MM-DD"T"HH24:MI:00"Z"',
  half_hour: 'YYYY-MM-DD"T"HH24:MI:00"Z"',
  minute: 'YYYY-MM-DD"T"HH24:MI:00"Z"',
};

/** Name of a group in the statement: a tag may have a longer name than a column of Postgres. */
export const groupName = (i: number): string => `group_${i}`;

/** The value that rows are grouped by, from the columns of the source. @param zone placeholder of the time zone */
function valueOf(group: UsageGroup, { time, isPeriod }: UsageSource, zone: string): string {
  if (isPeriod && isInterval(group)) return time;
  if (group === 'half_hour') return `date_bin('30 minutes', ${time}, 'epoch')`;
  if (group === 'minute') return `date_bin('1 minute', ${time}, 'epoch')`;
  if (isInterval(group)) return `date_trunc('${group}', ${time}, ${zone})`;
  const tag = TAG_GROUP.exec(group)?.[1];
  if (tag !== undefined) return `tags ->> '${tag}'`;
  if (group === 'team' || group === 'key') return `${group}_id`;
  if (group === 'group') return 'team_group';
  return group === 'session' ? SESSION_COLUMN : group;
}

/** Periods that are the same in every time zone. */
function isOfUtc(group: UsageGroup): boolean {
  return group === 'half_hour' || group === 'minute';
}

/** The same as text. Computed for each group and not for each row, which would take as long as adding the rows up. */
function textOf(group: UsageGroup, name: string, zone: string): string {
  if (!isInterval(group)) return `${name}::text`;
  const isClock = group === 'hour' || isOfUtc(group);
  return `to_char(${name} AT TIME ZONE ${isClock ? `'UTC'` : zone}, '${SHOWN[group]}')`;
}

/** The values of a row's groups, in the order of the groups; if the page is sorted by a sum, that sum comes first. */
export type GroupValues = (string | number | null)[];

/** The member of a result that holds a group's value. */
export function memberOf(group: UsageGroup): string {
  return group === 'team' || group === 'key' ? `${group}_id` : group;
}

/** Sorts the groups: time first, which is the only one in descending order. */
export function inOrder(groups: readonly UsageGroup[]): UsageGroup[] {
  const order = [...INTERVALS, ...PLAIN_GROUPS] as readonly string[];
  const placeOf = (group: string) => (order.includes(group) ? order.indexOf(group) : order.length);
  return [...groups].sort((a, b) => placeOf(a) - placeOf(b));
}

/** Counts as numbers, null as 0; money as text, so that no digit is lost, null if no call has a cost. */
const SHOWN_AS: Record<Measure['type'], (sql: string) => string> = {
  bigint: (sql) => `COALESCE(${sql}, 0)::float8`,
  'double precision': (sql) => `COALESCE(${sql}, 0)::float8`,
  numeric: (sql) => `(${sql})::text`,
  'bigint[]': (sql) => `(${sql})::float8[]`,
};

/** A page of groups. */
export interface UsagePlace {
  sort: UsageSort | undefined;
  /** See UsageRequest. */
  series: number | undefined;
  /** Of the last group of the page before; null: this is the first page. */
  last: GroupValues | null;
  limit: number;
}

/** The place of the name of the group whose values are series. */
export function seriesPlace(groups: readonly UsageGroup[]): number {
  return groups.findIndex((group) => !isInterval(group));
}

/** The sum of a series over all its periods, and its place among all series. */
export const SERIES_COLUMNS = ['series_sum', 'series_place'] as const;

const TOTAL_TOKENS = 'total_tokens';
const ENTRIES = Object.entries<Measure>(MEASURES);
/** Sums over all groups; durations are shown by their percentiles only. */
const SUMMED: readonly Measure['type'][] = ['bigint', 'numeric'];
const TOTALS = [
  ...ENTRIES.filter(([, { type }]) => SUMMED.includes(type)).map(([name]) => name),
  TOTAL_TOKENS,
];
const isMoney = (name: string): boolean =>
  name in MEASURES && MEASURES[name as keyof typeof MEASURES].type === 'numeric';

/**
 * One row per group. Its column `totals` has the sums over all groups, of later pages too.
 *
 * @param groups as inOrder() returns them @param zone IANA name
 */
export function usageSql(
  groups: readonly UsageGroup[],
  source: UsageSource,
  conditions: Conditions,
  zone: string,
  place: UsagePlace,
): string {
  // Postgres cannot tell the type of a placeholder that the statement does not use.
  const usesZone = groups.some(
    (group) => isInterval(group) && !isOfUtc(group) && !(group === 'hour' && source.isPeriod),
  );
  const placeholder = usesZone ? `${conditions.placeholder(zone)}::text` : '';
  const names = groups.map((_, i) => groupName(i));
  const values = groups.map((group, i) => `${valueOf(group, source, placeholder)} AS ${names[i]}`);
  const texts = groups.map((group, i) => `${textOf(group, names[i]!, placeholder)} AS ${names[i]}`);
  const sums = ENTRIES.map(([name, measure]) => `${source.sum(name, measure)} AS ${name}`);
  const shown = ENTRIES.map(([name, { type }]) => `${SHOWN_AS[type](name)} AS ${name}`);
  const totals = TOTALS.map((name) =>
    isMoney(name) ? `'${name}', (sum(${name}::numeric) OVER ())::text` : `'${name}', sum(${name}) OVER ()`,
  );
  const rows = `
      SELECT sums.*, json_build_object(${totals.join(', ')}) AS totals FROM (
        SELECT groups.*, prompt_tokens + completion_tokens AS ${TOTAL_TOKENS}
               ${place.sort === 'p95' ? `, ${percentileSql('latency', 0.95)} AS ${SORTS.p95}` : ''} FROM (
          SELECT ${[...texts, ...shown].join(', ')} FROM (
            SELECT ${[...values, ...sums].join(', ')}
            FROM ${withPresentNames(groups, source.from)}
            GROUP BY ${names.map((_, i) => i + 1).join(', ')}) AS added) AS groups) AS sums`;
  const [sum, rank] = SERIES_COLUMNS;
  const series = names[seriesPlace(groups)];
  const ranked = `
    SELECT *, dense_rank() OVER (ORDER BY ${sum} DESC, ${series} COLLATE "C" NULLS LAST) AS ${rank} FROM (
      SELECT *, sum(${sorted(place.sort ?? 'cost')}) OVER (PARTITION BY ${series}) AS ${sum} FROM (${rows}) AS counted) AS summed`;
  return `
    SELECT * FROM (${place.series === undefined ? rows : ranked}) AS usage
    ${pageSql(groups, names, conditions, place)}`;
}

/** Joins the present owners and cost centers of keys, and groups of teams, to the rows of a source, if a group needs them. */
function withPresentNames(groups: readonly UsageGroup[], from: string): string {
  const joins = [
    ...(GROUPED_ANNOTATIONS.some((name) => groups.includes(name))
      ? [`LEFT JOIN (${KEY_ANNOTATIONS}) AS noted USING (key_id)`]
      : []),
    ...(groups.includes('group') ? [`LEFT JOIN (${TEAM_GROUPS}) AS team_groups USING (team_id)`] : []),
  ];
  return joins.length === 0 ? from : `(SELECT * FROM ${from}) AS counted ${joins.join(' ')}`;
}

/** The sum that a page is sorted by, as a number: 0 for a group without a cost. */
function sorted(sort: UsageSort): string {
  return sort === 'cost' ? 'COALESCE(cost_usd::numeric, 0)' : SORTS[sort];
}

/** The ORDER BY clause of a page, and the conditions that exclude other series and the groups of earlier pages. */
function pageSql(
  groups: readonly UsageGroup[],
  names: readonly string[],
  conditions: Conditions,
  { sort, series, last, limit }: UsagePlace,
): string {
  // "C": the same order here and in the comparison, whatever the database's collation; nulls are last in both.
  const keys = names.map((name) => `${name} COLLATE "C"`);
  const order = groups.map((group, i) => (isInterval(group) ? `${keys[i]} DESC` : `${keys[i]} NULLS LAST`));
  if (sort !== undefined) order.unshift(`${sorted(sort)} DESC`);
  const wanted = [
    ...(series === undefined ? [] : [`${SERIES_COLUMNS[1]} <= ${conditions.placeholder(series)}`]),
    ...(last === null ? [] : [`(${after(groups, keys, sort, last, conditions)})`]),
  ];
  return `${wanted.length > 0 ? `WHERE ${wanted.join(' AND ')}` : ''} ORDER BY ${order.join(', ')} LIMIT ${conditions.placeholder(limit)}`;
}

/** SQL condition for groups after these values, of which the first is the sum if the page is sorted by one. */
function after(
  groups: readonly UsageGroup[],
  keys: readonly string[],
  sort: UsageSort | undefined,
  last: GroupValues,
  conditions: Conditions,
): string {
  if (sort === undefined) return comparison(groups, keys, last, conditions);
  const [sum, ...values] = last;
  const place = `${conditions.placeholder(sum ?? 0)}::numeric`;
  const tied = comparison(groups, keys, values, conditions);
  return `${sorted(sort)} < ${place} OR ${sorted(sort)} = ${place} AND (${tied})`;
}

/**
 * SQL condition for groups after these values: the first one that differs decides. Nested, so that its length is
 * proportional to the number of groups.
 */
function comparison(
  groups: readonly UsageGroup[],
  keys: readonly string[],
  last: GroupValues,
  conditions: Conditions,
): string {
  const places = last.map((value) => `${conditions.placeholder(value)}::text`);
  return groups.reduceRight((rest, group, i) => {
    const [key, place] = [keys[i], places[i]];
    const later = isInterval(group)
      ? `${key} < ${place}`
      : `(${key} > ${place} OR ${key} IS NULL AND ${place} IS NOT NULL)`;
    return `(${later} OR ${key} IS NOT DISTINCT FROM ${place} AND ${rest})`;
  }, 'false');
}

export function cursorOf(values: GroupValues): string {
  return Buffer.from(JSON.stringify(values)).toString('base64url');
}

/** @throws ServiceError invalid for a cursor that no page of these groups and this order returned */
export function valuesOf(cursor: string, count: number, isSorted: boolean): GroupValues {
  try {
    const values = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown;
    const [sum, groups] =
      Array.isArray(values) && isSorted ? [values[0] as unknown, values.slice(1)] : [0, values];
    const isOurs =
      (sum === null || /^\d{1,30}(\.\d{1,9})?$/.test(typeof sum === 'string' ? sum : JSON.stringify(sum))) &&
      Array.isArray(groups) &&
      groups.length === count &&
      groups.every((value) => value === null || (typeof value === 'string' && !value.includes('\0')));
    if (isOurs) return values as GroupValues;
  } catch {
    // Not JSON: the same error.
  }
  throw ServiceError.of(
    'invalid',
    'cursor',
    'must be the next_cursor of a page with the same group_by and sort; leave it out to begin',
  );
}
