import type { GroupedAnnotation } from '../../keys/key-annotations.js';
import type { ArchivePage } from '../../requests/log-archive.js';
import {
  IS_ERROR_SQL,
  PROVIDER_ERROR_COLUMNS,
  type RequestFilter,
  SESSION_COLUMN,
} from '../../requests/request-query.js';

/** A query of ClickHouse with its parameters. */
export interface ArchiveQuery {
  query: string;
  query_params: Record<string, string | number>;
}

/** IDs in their order as text: ClickHouse compares their second half first. */
const ORDER = 'ORDER BY started_at DESC, toString(id) DESC';

const time = (name: string) => `fromUnixTimestamp64Milli({${name}: Int64}, 'UTC')`;

/** A list of texts, from a parameter with its JSON. */
function texts(name: string): string {
  return `JSONExtract({${name}: String}, 'Array(String)')`;
}

/** The parameters that have the keys with such an annotation, and its values. */
export const annotationParams = (name: GroupedAnnotation) => [`${name}_keys`, `${name}_values`] as const;

function annotation(name: GroupedAnnotation): string {
  const [keys, values] = annotationParams(name);
  return `nullIf(transform(toString(key_id), ${texts(keys)}, ${texts(values)}, ''), '')`;
}

/** What usage groups by, where it is not a column of the group's name. */
export const GROUP_COLUMNS: Record<string, string> = {
  team: 'toString(team_id)',
  key: 'toString(key_id)',
  session: SESSION_COLUMN,
  group: `nullIf(transform(toString(team_id), ${texts('grouped_teams')}, ${texts('team_groups')}, ''), '')`,
  owner: annotation('owner'),
  cost_center: annotation('cost_center'),
};

/** The conditions of each filter, with its value as a parameter of the same name. */
const CONDITIONS: Partial<Record<keyof RequestFilter, string>> = {
  from: `started_at >= ${time('from')}`,
  to: `started_at < ${time('to')}`,
  teams: `has(splitByChar(',', {teams: String}), toString(team_id))`,
  group_teams: `has(splitByChar(',', {group_teams: String}), toString(team_id))`,
  noted_keys: `has(splitByChar(',', {noted_keys: String}), toString(key_id))`,
  team: 'team_id = toUUID({team: String})',
  key: 'key_id = toUUID({key: String})',
  provider: 'provider = {provider: String}',
  model: 'model = {model: String}',
  outcome: 'outcome = {outcome: String}',
  failed: `ifNull(${IS_ERROR_SQL}, false) = ({failed: String} = 'true')`,
  usage_final: `usage_final = ({usage_final: String} = 'true')`,
  provider_error: `(${PROVIDER_ERROR_COLUMNS.map((name) => `${name} = {provider_error: String}`).join(' OR ')})`,
  min_duration_ms: 'duration_ms >= {min_duration_ms: Float64}',
  end_user: 'end_user = {end_user: String}',
  session: `${SESSION_COLUMN} = {session: String}`,
  subject: 'subject = {subject: String}',
  provider_request_id: 'provider_request_id = {provider_request_id: String}',
  status: `has(splitByChar(',', {status: String}), ifNull(toString(status), ''))`,
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
    const value = filter[name as Exclude<keyof RequestFilter, 'tag'>];
    if (value === undefined) continue;
    conditions.push(condition);
    query_params[name] = parameter(value);
  }
  for (const [i, [name, value]] of Object.entries(filter.tag ?? {}).entries()) {
    conditions.push(
      `JSONExtract(ifNull(tags, ''), {tag_${i}: String}, 'Nullable(String)') = {tag_value_${i}: String}`,
    );
    query_params[`tag_${i}`] = name;
    query_params[`tag_value_${i}`] = value;
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

function parameter(value: NonNullable<RequestFilter[Exclude<keyof RequestFilter, 'tag'>]>): string | number {
  if (value instanceof Date) return value.getTime();
  if (typeof value === 'number') return value;
  return Array.isArray(value) ? value.join(',') : String(value);
}
