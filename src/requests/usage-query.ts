import { ServiceError } from '../errors/service-error.js';
import type { StoredRow } from '../request-log/columns.js';
import type { Conditions } from './request-query.js';

export const USAGE_GROUPS = ['team', 'key', 'provider', 'model', 'day', 'hour'] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

/** The column of each group. Days and hours are UTC, whatever the session's time zone. */
const COLUMNS: Record<UsageGroup, { name: string; sql: string; shown: string }> = {
  day: { name: 'day', sql: `(started_at AT TIME ZONE 'UTC')::date`, shown: `to_char(day, 'YYYY-MM-DD')` },
  hour: {
    name: 'hour',
    sql: `date_trunc('hour', started_at AT TIME ZONE 'UTC')`,
    shown: `to_char(hour, 'YYYY-MM-DD"T"HH24":00:00Z"')`,
  },
  team: { name: 'team_id', sql: 'team_id', shown: 'team_id::text' },
  key: { name: 'key_id', sql: 'key_id', shown: 'key_id::text' },
  provider: { name: 'provider', sql: 'provider', shown: 'provider' },
  model: { name: 'model', sql: 'model', shown: 'model' },
};

/** Matches failed calls, as in the views: a client that disconnected is no error. */
const IS_ERROR = `(status >= 400 OR outcome NOT IN ('completed', 'replayed', 'client_aborted'))`;

/** The columns that are added up. Null adds nothing; replayed calls report no tokens. */
export const SUMMED = [
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'reasoning_tokens',
  'request_bytes',
  'response_bytes',
] as const satisfies readonly (keyof StoredRow)[];

const SUMS: Readonly<Record<string, string>> = {
  calls: 'count(*)',
  errors: `count(*) FILTER (WHERE ${IS_ERROR})`,
  calls_without_tokens: 'count(*) FILTER (WHERE prompt_tokens IS NULL AND completion_tokens IS NULL)',
  total_tokens: 'COALESCE(sum(prompt_tokens), 0) + COALESCE(sum(completion_tokens), 0)',
  ...Object.fromEntries(SUMMED.map((name) => [name, `COALESCE(sum(${name}), 0)`])),
};

/** The names of all sums. */
export const SUM_NAMES = Object.keys(SUMS);

/** What groups can be sorted by, largest first, and the sum that decides. */
const SORTS = { calls: 'calls', errors: 'errors', tokens: 'total_tokens' } as const;
export type UsageSort = keyof typeof SORTS;
export const USAGE_SORTS = Object.keys(SORTS) as UsageSort[];

/** The values of a row's groups, in the order of the groups; if the page is sorted by a sum, that sum comes first. */
export type GroupValues = (string | number | null)[];

export function columnOf(group: UsageGroup): string {
  return COLUMNS[group].name;
}

/** Sorts the groups: time first, which is the only one in descending order. */
export function inOrder(groups: readonly UsageGroup[]): UsageGroup[] {
  return USAGE_GROUPS.filter((group) => groups.includes(group)).sort((a, b) => +isTime(b) - +isTime(a));
}

/** The sum that a page is sorted by. */
export function sumOf(sort: UsageSort): string {
  return SORTS[sort];
}

/**
 * One row per group. Its column `totals` has the sums over all groups, of earlier and later pages too.
 *
 * @param groups as inOrder() returns them
 */
export function usageSql(groups: readonly UsageGroup[], where: string, page: string): string {
  const columns = groups.map((group) => COLUMNS[group]);
  const sums = Object.entries(SUMS).map(([name, sql]) => `(${sql})::float8 AS ${name}`);
  const names = Object.keys(SUMS);
  const totals = names.map((name) => `'${name}', sum(${name}) OVER ()`);
  return `
    SELECT * FROM (
      SELECT ${columns.map(({ name, shown }) => `${shown} AS ${name}`).join(', ')}, ${names.join(', ')},
             json_build_object(${totals.join(', ')}) AS totals
      FROM (
        SELECT ${columns.map(({ name, sql }) => `${sql} AS ${name}`).join(', ')}, ${sums.join(', ')}
        FROM request_log ${where}
        GROUP BY ${columns.map((_, i) => i + 1).join(', ')}) AS sums) AS usage
    ${page}`;
}

/** The ORDER BY clause of a page, and the condition that excludes the groups of earlier pages. */
export function pageSql(
  groups: readonly UsageGroup[],
  sort: UsageSort | undefined,
  conditions: Conditions,
  cursor: string | undefined,
  limit: number,
): string {
  // "C": the same order here and in the comparison, whatever the database's collation; nulls are last in both.
  const keys = groups.map((group) => `${COLUMNS[group].name} COLLATE "C"`);
  const order = groups.map((group, i) => (isTime(group) ? `${keys[i]} DESC` : `${keys[i]} NULLS LAST`));
  if (sort !== undefined) order.unshift(`${SORTS[sort]} DESC`);
  const last = cursor === undefined ? null : valuesOf(cursor, groups.length, sort !== undefined);
  const isAfter = last && after(groups, keys, sort, last, conditions);
  return `${isAfter ? `WHERE ${isAfter}` : ''} ORDER BY ${order.join(', ')} LIMIT ${conditions.placeholder(limit)}`;
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
  const place = `${conditions.placeholder(sum)}::float8`;
  const tied = comparison(groups, keys, values, conditions);
  return `${SORTS[sort]} < ${place} OR ${SORTS[sort]} = ${place} AND (${tied})`;
}

/** SQL condition for groups after these values: the first one that differs decides. */
function comparison(
  groups: readonly UsageGroup[],
  keys: readonly string[],
  last: GroupValues,
  conditions: Conditions,
): string {
  const places = last.map((value) => `${conditions.placeholder(value)}::text`);
  const alternatives = groups.map((group, i) => {
    const same = keys.slice(0, i).map((key, j) => `${key} IS NOT DISTINCT FROM ${places[j]}`);
    const later = isTime(group)
      ? `${keys[i]} < ${places[i]}`
      : `(${keys[i]} > ${places[i]} OR ${keys[i]} IS NULL AND ${places[i]} IS NOT NULL)`;
    return [...same, later].join(' AND ');
  });
  return alternatives.map((sql) => `(${sql})`).join(' OR ');
}

export function cursorOf(values: GroupValues): string {
  return Buffer.from(JSON.stringify(values)).toString('base64url');
}

/** @throws ServiceError invalid for a cursor that no page of these groups and this order returned */
function valuesOf(cursor: string, count: number, isSorted: boolean): GroupValues {
  try {
    const values = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown;
    const [sum, groups] = Array.isArray(values) && isSorted ? [values[0], values.slice(1)] : [0, values];
    const isOurs =
      Number.isFinite(sum) &&
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

function isTime(group: UsageGroup): boolean {
  return group === 'day' || group === 'hour';
}
