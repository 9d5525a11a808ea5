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
  ...Object.fromEntries(SUMMED.map((name) => [name, `COALESCE(sum(${name}), 0)`])),
  unpriced_calls: 'count(*) FILTER (WHERE cost_usd IS NULL AND (prompt_tokens IS NOT NULL OR completion_tokens IS NOT NULL))',
};

/** As text, so that no digit is lost; null if no call has a cost. */
const COST = 'sum(cost_usd)::text AS cost_usd';

/** The values of a row's groups, in the order of the groups. */
export type GroupValues = (string | null)[];

export function columnOf(group: UsageGroup): string {
  return COLUMNS[group].name;
}

/** Sorts the groups: time first, which is the only one in descending order. */
export function inOrder(groups: readonly UsageGroup[]): UsageGroup[] {
  return USAGE_GROUPS.filter((group) => groups.includes(group)).sort((a, b) => +isTime(b) - +isTime(a));
}

/** @param groups as inOrder() returns them */
export function usageSql(groups: readonly UsageGroup[], where: string, page: string): string {
  const columns = groups.map((group) => COLUMNS[group]);
  const sums = [...Object.entries(SUMS).map(([name, sql]) => `${sql}::float8 AS ${name}`), COST];
  const names = [...Object.keys(SUMS), 'cost_usd'];
  return `
    SELECT * FROM (
      SELECT ${columns.map(({ name, shown }) => `${shown} AS ${name}`).join(', ')}, ${names.join(', ')}
      FROM (
        SELECT ${columns.map(({ name, sql }) => `${sql} AS ${name}`).join(', ')}, ${sums.join(', ')}
        FROM request_log ${where}
        GROUP BY ${columns.map((_, i) => i + 1).join(', ')}) AS sums) AS usage
    ${page}`;
}

/** The ORDER BY clause of a page, and the condition that excludes the groups of earlier pages. */
export function pageSql(
  groups: readonly UsageGroup[],
  conditions: Conditions,
  cursor: string | undefined,
  limit: number,
): string {
  // "C": the same order here and in the comparison, whatever the database's collation; nulls are last in both.
  const keys = groups.map((group) => `${COLUMNS[group].name} COLLATE "C"`);
  const order = groups.map((group, i) => (isTime(group) ? `${keys[i]} DESC` : `${keys[i]} NULLS LAST`));
  const last = cursor === undefined ? null : valuesOf(cursor, groups.length);
  const isAfter = last && comparison(groups, keys, last, conditions);
  return `${isAfter ? `WHERE ${isAfter}` : ''} ORDER BY ${order.join(', ')} LIMIT ${conditions.placeholder(limit)}`;
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

/** @throws ServiceError invalid for a cursor that no page of these groups returned */
function valuesOf(cursor: string, count: number): GroupValues {
  try {
    const values = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown;
    const isOurs =
      Array.isArray(values) &&
      values.length === count &&
      values.every((value) => value === null || (typeof value === 'string' && !value.includes('\0')));
    if (isOurs) return values as GroupValues;
  } catch {
    // Not JSON: the same error.
  }
  throw ServiceError.of(
    'invalid',
    'cursor',
    'must be the next_cursor of a page with the same group_by; leave it out to begin',
  );
}

function isTime(group: UsageGroup): boolean {
  return group === 'day' || group === 'hour';
}
