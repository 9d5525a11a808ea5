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

export function listQuery(table: string, filter: RequestFilter, page: ArchivePage): ArchiveQuery {
  const query_params: ArchiveQuery['query_params'] = { before: page.before.getTime(), limit: page.limit };
  const conditions = [`started_at < ${time('before')}`];
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
  if (page.after !== null) {
    conditions.push(`(started_at, toString(id)) < (${time('after')}, {after_id: String})`);
    query_params.after = page.after.startedAt.getTime();
    query_params.after_id = page.after.id;
  }
  const where = conditions.join(' AND ');
  return { query: `SELECT * FROM ${table} FINAL WHERE ${where} ${ORDER} LIMIT {limit: Int32}`, query_params };
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
