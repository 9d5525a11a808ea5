import { GROUPED_ANNOTATIONS, type GroupedAnnotation } from '../../keys/key-annotations.js';
import { type Measure, MEASURES } from '../../usage/measures.js';
import { isInterval, SORTS, TAG_GROUP, type UsageGroup, type UsageSort } from '../../usage/usage-groups.js';
import { SERIES_COLUMNS, seriesPlace, type UsageRequest, valuesOf } from '../../usage/usage-query.js';
import { annotationParams, type ArchiveQuery, conditionsOf, GROUP_COLUMNS } from './archive-query.js';

/** The values of keys by their IDs, by the group that needs them. */
export type KeyAnnotations = Partial<Record<GroupedAnnotation, ReadonlyMap<string, string>>>;

/** Measures that are shown, or from which what is shown is computed. */
const ENTRIES = Object.entries<Measure>(MEASURES).filter(([, { type }]) => type !== 'double precision');

/** Where the archive has a sum. Not its own name: ClickHouse would take a column of that name for the sum. */
export const sumName = (name: string): string => `sum_${name}`;
/** Where each row has the sum over all groups. */
export const totalName = (name: string): string => `total_${name}`;
export const groupName = (i: number): string => `group_${i}`;

function archivedMeasure([name, { type, clickhouse }]: [string, Measure]): string {
  return `${type === 'bigint' ? `ifNull(${clickhouse}, 0)` : clickhouse} AS ${sumName(name)}`;
}

const TOTALS = ENTRIES.filter(([, { type }]) => type !== 'bigint[]').map(
  ([name]) => `sum(${sumName(name)}) OVER () AS ${totalName(name)}`,
);

const CLOCK = `'%Y-%m-%dT%H:%i:00Z', 'UTC'`;
const ZONE = '{zone: String}';
const PERIODS: Record<string, string> = {
  month: `formatDateTime(started_at, '%Y-%m', ${ZONE})`,
  week: `toString(toMonday(toDate(started_at, ${ZONE})))`,
  day: `formatDateTime(started_at, '%Y-%m-%d', ${ZONE})`,
  hour: `formatDateTime(toStartOfHour(toTimeZone(started_at, ${ZONE})), ${CLOCK})`,
  half_hour: `formatDateTime(toStartOfInterval(started_at, INTERVAL 30 MINUTE, 'UTC'), ${CLOCK})`,
  minute: `formatDateTime(toStartOfMinute(started_at), ${CLOCK})`,
};

function columnOf(group: UsageGroup): string {
  const tag = TAG_GROUP.exec(group)?.[1];
  // The name has no quote.
  if (tag !== undefined) return `JSONExtract(ifNull(tags, ''), '${tag}', 'Nullable(String)')`;
  return PERIODS[group] ?? GROUP_COLUMNS[group] ?? group;
}

const sorted = (sort: UsageSort): string =>
  sort === 'tokens'
    ? `${sumName('prompt_tokens')} + ${sumName('completion_tokens')}`
    : sort === 'cost'
      ? `ifNull(${sumName('cost_usd')}, toDecimal128(0, 9))`
      : sumName(SORTS[sort]);

/**
 * One row per group, in the order of Postgres; on the first page each with the sums over all groups. WITH TOTALS would
 * return text that is no JSON if there are no groups.
 *
 * @param groups as inOrder() returns them @param zone IANA name @param annotations of keys, by the group that needs them
 * @param teamGroups groups by the ID of the team, if they are needed
 * @throws ServiceError invalid for a foreign cursor
 */
export function usageQuery(
  table: string,
  groups: readonly UsageGroup[],
  { limit, cursor, sort, series, ...filter }: UsageRequest,
  zone: string,
  annotations: KeyAnnotations = {},
  teamGroups?: ReadonlyMap<string, string>,
): ArchiveQuery {
  const { conditions, query_params } = conditionsOf(filter);
  for (const name of GROUPED_ANNOTATIONS.filter((group) => groups.includes(group))) {
    const [keys, values] = annotationParams(name);
    query_params[keys] = JSON.stringify([...(annotations[name]?.keys() ?? [])]);
    query_params[values] = JSON.stringify([...(annotations[name]?.values() ?? [])]);
  }
  if (teamGroups !== undefined) {
    query_params.grouped_teams = JSON.stringify([...teamGroups.keys()]);
    query_params.team_groups = JSON.stringify([...teamGroups.values()]);
  }
  const names = groups.map((_, i) => groupName(i));
  const columns = groups.map((group, i) => `${columnOf(group)} AS ${names[i]}`);
  const order = groups.map((group, i) => `${names[i]} ${isInterval(group) ? 'DESC' : 'ASC NULLS LAST'}`);
  if (sort !== undefined) order.unshift(`${sorted(sort)} DESC`);
  const sums = `SELECT ${[...columns, ...ENTRIES.map(archivedMeasure)].join(', ')} FROM ${table} FINAL
    ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`} GROUP BY ${names.join(', ')}`;
  const totals = cursor === undefined ? `, ${TOTALS.join(', ')}` : '';
  const later = cursor === undefined ? [] : [`(${after(groups, sort, cursor, query_params)})`];
  const page = `ORDER BY ${order.join(', ')} LIMIT {limit: Int32}`;
  if (series === undefined) {
    return {
      query: `SELECT *${totals} FROM (${sums}) AS sums ${whereAll(later)} ${page}`,
      query_params: { ...query_params, zone, limit },
    };
  }
  const [sum, rank] = SERIES_COLUMNS;
  const name = names[seriesPlace(groups)];
  // The sums over all groups, and the places of all series, before any are left out.
  const summed = `SELECT *${totals}, sum(${sorted(sort ?? 'cost')}) OVER (PARTITION BY ${name}) AS ${sum} FROM (${sums}) AS sums`;
  const ranked = `SELECT *, dense_rank() OVER (ORDER BY ${sum} DESC, ${name} ASC NULLS LAST) AS ${rank} FROM (${summed}) AS summed`;
  const shown = whereAll([`${rank} <= {series: Int32}`, ...later]);
  return {
    query: `SELECT * FROM (${ranked}) AS ranked ${shown} ${page}`,
    query_params: { ...query_params, zone, limit, series },
  };
}

const whereAll = (conditions: readonly string[]): string =>
  conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;

/** Condition for groups after those of a cursor: the first one that differs decides. */
function after(
  groups: readonly UsageGroup[],
  sort: UsageSort | undefined,
  cursor: string,
  params: ArchiveQuery['query_params'],
): string {
  const all = valuesOf(cursor, groups.length, sort !== undefined);
  const values = sort === undefined ? all : all.slice(1);
  const same = values.map((value, i) => {
    if (value === null) return `isNull(${groupName(i)})`;
    params[`after_${i}`] = value;
    return `ifNull(${groupName(i)} = {after_${i}: String}, false)`;
  });
  const later = values.map((value, i) => {
    const name = groupName(i);
    if (isInterval(groups[i]!)) return `${name} < {after_${i}: String}`;
    return value === null ? 'false' : `ifNull(${name} > {after_${i}: String}, true)`;
  });
  const tied = later
    .map((condition, i) => `(${[...same.slice(0, i), condition].join(' AND ')})`)
    .join(' OR ');
  if (sort === undefined) return tied;
  params.after_sum = String(all[0] ?? 0);
  const sum = 'toDecimal128({after_sum: String}, 9)';
  return `${sorted(sort)} < ${sum} OR ${sorted(sort)} = ${sum} AND (${tied})`;
}
