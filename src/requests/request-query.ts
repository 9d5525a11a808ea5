import { idOfCursor, type PageRequest } from '../database/page.js';
import type { Outcome } from '../request-log/request-log.entity.js';

/** A status or a class of them, such as `429` or `5xx`. Providers also send statuses that no RFC defines. */
const STATUS = /^[1-9](\d\d|xx)$/;

/**
 * The statuses of a filter: `429` is one, `5xx` are a hundred.
 *
 * @returns null if it is not a list of statuses and classes, separated by commas
 */
export function statusesOf(text: string): readonly number[] | null {
  const words = text.split(',');
  if (!words.every((word) => STATUS.test(word))) return null;
  return words.flatMap((word) =>
    word.endsWith('xx') ? Array.from({ length: 100 }, (_, i) => Number(word[0]) * 100 + i) : Number(word),
  );
}

/** Matches failed calls, as in the views: a client that disconnected is no error, and an attempt that was retried is no call. */
export const IS_ERROR_SQL = `(outcome <> 'retried' AND (status >= 400 OR outcome NOT IN ('completed', 'replayed', 'cached', 'client_aborted')))`;

/** The column that the filter `session` compares. */
export const SESSION_COLUMN = 'session_id';

/** The columns that the filter `provider_error` compares. */
export const PROVIDER_ERROR_COLUMNS = ['provider_error_code', 'provider_error_type'] as const;

/** Selects rows of the request log; all given conditions must hold. Shared by list, export and usage. */
export interface RequestFilter {
  /** IDs of the teams whose calls may be seen; absent: all. */
  teams?: readonly string[];
  /** IDs of the teams of a group. */
  group_teams?: readonly string[];
  /** IDs of the keys with an owner or a cost center. */
  noted_keys?: readonly string[];
  /** Team ID. */
  team?: string;
  /** Key ID. */
  key?: string;
  provider?: string;
  model?: string;
  /** Any of these. */
  status?: readonly number[];
  outcome?: Outcome;
  /** Failed calls, or only others. */
  failed?: boolean;
  /** Calls whose usage was read to the end, or was not. */
  usage_final?: boolean;
  /** Type or code of the provider's error. */
  provider_error?: string;
  min_duration_ms?: number;
  /** As the log stores it. */
  end_user?: string;
  session?: string;
  /** Whom the token was issued to, as the log stores it. */
  subject?: string;
  /** All of these tags. */
  tag?: Readonly<Record<string, string>>;
  /** ID that the provider gave its response. */
  provider_request_id?: string;
  /** Started at this time or later. */
  from?: Date;
  /** Started before this time. */
  to?: Date;
  /** Stored in Postgres after this time, which may be long after the start of the call. */
  recorded_after?: Date;
}

/** The WHERE clause of a query and its values, numbered as they are added. */
export class Conditions {
  private readonly parts: string[] = [];
  readonly values: unknown[] = [];

  /** Adds `sql`, in which `?` stands for the value. Does nothing if the value is absent. */
  add(sql: string, value: unknown): this {
    if (value === undefined || value === null) return this;
    this.values.push(value);
    this.parts.push(sql.replaceAll('?', `$${this.values.length}`));
    return this;
  }

  get where(): string {
    return this.parts.length === 0 ? '' : `WHERE ${this.parts.join(' AND ')}`;
  }

  /** Adds a value that is used outside the WHERE clause. @returns its placeholder */
  placeholder(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
}

/** The conditions of a filter. Bounds on `started_at` are plain comparisons, so that Postgres skips other days. */
export function conditionsOf(filter: RequestFilter): Conditions {
  return new Conditions()
    .add('started_at >= ?', filter.from)
    .add('started_at < ?', filter.to)
    .add('team_id = ANY (?)', filter.teams)
    .add('team_id = ANY (?)', filter.group_teams)
    .add('key_id = ANY (?)', filter.noted_keys)
    .add('team_id = ?', filter.team)
    .add('key_id = ?', filter.key)
    .add('provider = ?', filter.provider)
    .add('model = ?', filter.model)
    .add('outcome = ?', filter.outcome)
    .add(`(${IS_ERROR_SQL} IS TRUE) = ?`, filter.failed)
    .add('usage_final = ?', filter.usage_final)
    .add(`(${PROVIDER_ERROR_COLUMNS.map((name) => `${name} = ?`).join(' OR ')})`, filter.provider_error)
    .add('duration_ms >= ?', filter.min_duration_ms)
    .add('end_user = ?', filter.end_user)
    .add(`${SESSION_COLUMN} = ?`, filter.session)
    .add('subject = ?', filter.subject)
    .add('tags @> ?::jsonb', filter.tag)
    .add('provider_request_id = ?', filter.provider_request_id)
    .add('recorded_at > ?', filter.recorded_after)
    .add('status = ANY (?)', filter.status);
}

/**
 * Adds the start of a page. A row comparison alone does not let Postgres skip partitions, hence the plain one.
 *
 * @throws ServiceError invalid for a foreign cursor
 */
export function after(conditions: Conditions, cursor: PageRequest['cursor']): Conditions {
  const id = idOfCursor(cursor);
  if (id === null) return conditions;
  const startedAt = conditions.placeholder(startedAtOf(id));
  return conditions.add(`started_at <= ${startedAt} AND (started_at, id) < (${startedAt}, ?)`, id);
}

/** When the call with this UUIDv7 began: its first 48 bits are Unix milliseconds (RFC 9562 5.7). */
export function startedAtOf(id: string): Date {
  return new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16));
}
