import type { ArchivePage } from '../../requests/log-archive.js';
import { IS_ERROR_SQL, type RequestFilter, SESSION_COLUMN } from '../../requests/request-query.js';

/** A query of ClickHouse with its parameters. */
export interface ArchiveQuery {
  query: string;
  query_params: Record<string, string | number>;
}

/** IDs in their order as text: ClickHouse compares their second half first. */
const ORDER = 'ORDER BY started_at DESC, toString(id) DESC';

const time = (name: string) => `fromUnixTimestamp64Milli({${name}: Int64}, 'UTC')`;

/** What usage groups by, where it is not a column of the group's name. */
export const GROUP_COLUMNS: Record<string, string> = {
  team: 'toString(team_id)',
  key: 'toString(key_id)',
  session: SESSION_COLUMN,
};

/** The conditions of each filter, with its value as a parameter of the same name. */
const CONDITIONS: Partial<Record<keyof RequestFilter, string>> = {
  from: `started_at >= ${time('from')}`,
  to: `started_at < ${time('to')}`,
  teams: `has(splitByChar(',', {teams: String}), toString(team_id))`,
  team: 'team_id = toUUID({team: String})',
  key: 'key_id = toUUID({key: String})',
  provider: 'provider = {provider: String}',
  model: 'model = {model: String}',
  outcome: 'outcome = {outcome: String}',
  failed: `ifNull(${IS_ERROR_SQL}, false) = ({failed: String} = 'true')`,
  min_duration_ms: 'duration_ms >= {min_duration_ms: Float64}',
  end_user: 'end_user = {end_user: String}',
  session: `${SESSION_COLUMN} = {session: String}`,
  recorded_after: `recorded_at > ${time('recorded_after')}`,
};

/** The conditions of a filter, and their values. */
export function conditionsOf(filter: RequestFilter): {
  conditions: string[];
  query_params: ArchiveQuery['query_params'];
} {
  const conditions: string[] = [];
  const query_params: ArchiveQuery['query_params'] = {};
  for (const [name, condition] of Object.entries(CONDITIONS)) {
    const value = filter[name as keyof RequestFilter];
    if (value === undefined) continue;
    conditions.push(condition);
    query_params[name] = parameter(value);
  }
  if (filter.status !== undefined) {
    conditions.push('status >= {lowest: Int32}', 'status <= {highest: Int32}');
    query_params.lowest = Number(filter.status.replace('xx', '00'));
    query_params.highest = Number(filter.status.replace('xx', '99'));
  }
  return { conditions, query_params };
}

export function listQuery(table: string, filter: RequestFilter, page: ArchivePage): ArchiveQuery {
  const { conditions, query_params } = conditionsOf(filter);
  conditions.push(`started_at < ${time('before')}`);
  query_params.before = page.before.getTime();
  query_params.limit = page.limit;
  if (page.after !== null) {
    conditions.push(`(started_at, toString(id)) < (${time('after')}, {after_id: String})`);
    query_params.after = page.after.startedAt.getTime();
    query_params.after_id = page.after.id;
  }
  const where = conditions.join(' AND ');
  return { query: `SELECT * FROM ${table} FINAL WHERE ${where} ${ORDER} LIMIT {limit: Int32}`, query_params };
}

/** When the newest call before this time started. */
export function newestQuery(table: string, filter: RequestFilter, before: Date): ArchiveQuery {
  const { conditions, query_params } = conditionsOf(filter);
  const where = [...conditions, `started_at < ${time('before')}`].join(' AND ');
  return {
    query: `SELECT maxOrNull(started_at) AS newest FROM ${table} FINAL WHERE ${where}`,
    query_params: { ...query_params, before: before.getTime() },
  };
}

export function findQuery(table: string, id: string, startedAt: Date): ArchiveQuery {
  return {
    query: `SELECT * FROM ${table} FINAL WHERE started_at = ${time('at')} AND id = toUUID({id: String})`,
    query_params: { at: startedAt.getTime(), id },
  };
}

function parameter(value: NonNullable<RequestFilter[keyof RequestFilter]>): string | number {
  if (value instanceof Date) return value.getTime();
  if (typeof value === 'number') return value;
  return Array.isArray(value) ? value.join(',') : String(value);
}
