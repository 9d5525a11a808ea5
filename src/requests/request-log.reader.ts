import { Injectable } from '@nestjs/common';
import { idOfCursor, isUuid, type Page, pageOf, type PageRequest } from '../database/page.js';
import { ServiceError } from '../errors/service-error.js';
import type { Scope } from '../admin/access/access.js';
import { attemptIds } from '../request-log/attempts.js';
import { oldestDay } from '../request-log/partitions.js';
import { LogArchive } from './log-archive.js';
import { ReaderPool } from './reader-pool.js';
import { recordedUntil } from '../request-log/recorded-until.js';
import { after, conditionsOf, type RequestFilter, startedAtOf } from './request-query.js';
import { type RequestRow, requestView, type RequestView, SELECT_REQUESTS } from './request-view.js';

const FIND = `
  ${SELECT_REQUESTS} WHERE started_at = $1 AND id = $2 AND ($3::uuid[] IS NULL OR team_id = ANY ($3))`;
const FIND_ATTEMPTS = `${SELECT_REQUESTS} WHERE started_at = $1 AND id = ANY ($2) AND call_id = $3 ORDER BY attempt`;

/** Comes after every ID. */
export const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** Where the rows of a page were read. */
export type PageSource = 'log' | 'archive' | 'both';

/** A position in the order in which rows were recorded. */
export interface RecordedPlace {
  recorded_at: Date;
  id: string;
}

/** Reads rows of the request log. */
@Injectable()
export class RequestLogReader {
  constructor(
    private readonly pool: ReaderPool,
    private readonly archive: LogArchive = new LogArchive(),
  ) {}

  /** Newest first. @throws ServiceError invalid for a foreign cursor */
  async list({
    limit,
    cursor,
    ...filter
  }: RequestFilter & PageRequest): Promise<Page<RequestView> & { source: PageSource }> {
    const conditions = after(conditionsOf(filter), cursor);
    const count = conditions.placeholder(limit + 1);
    const { rows } = await this.pool
      .of(filter.teams)
      .query<RequestRow>(
        `${SELECT_REQUESTS} ${conditions.where} ORDER BY started_at DESC, id DESC LIMIT ${count}`,
        conditions.values,
      );
    const views = rows.map(requestView);
    const older =
      views.length > limit ? [] : await this.archived(filter, limit + 1 - views.length, cursor, views.at(-1));
    const page = pageOf([...views, ...older], limit, (view) => view);
    return { ...page, source: older.length === 0 ? 'log' : views.length === 0 ? 'archive' : 'both' };
  }

  /** Rows of days that the log no longer has, after the last row that it has. */
  private async archived(
    filter: RequestFilter,
    limit: number,
    cursor: PageRequest['cursor'],
    last: RequestView | undefined,
  ): Promise<RequestView[]> {
    const { reader } = this.archive;
    if (reader === null) return [];
    const before = await oldestDay(this.pool.of(filter.teams));
    if (filter.from !== undefined && filter.from >= before) return [];
    const id = last?.id ?? idOfCursor(cursor);
    const after = id === null ? null : { startedAt: startedAtOf(id), id };
    return reader.list(filter, { before, after, limit });
  }

  /** Reads one partition: the ID contains the day of the call. @throws ServiceError not_found, also outside the scope */
  async get(id: string, scope: Scope = null): Promise<RequestView> {
    const { rows } = isUuid(id)
      ? await this.pool.of(scope).query<RequestRow>(FIND, [startedAtOf(id), id, scope])
      : { rows: [] };
    if (rows[0] === undefined) {
      const archived = isUuid(id) ? await this.archive.reader?.get(id, startedAtOf(id), scope) : null;
      if (archived) return archived;
      throw ServiceError.of(
        'not_found',
        'id',
        'no call in the log has this id; give its x-gateway-request-id',
      );
    }
    return requestView(rows[0]);
  }

  /** All attempts of a call by a route, the first one first; none if it did not use a route. */
  async attempts({ call_id: callId }: RequestView): Promise<RequestView[]> {
    if (callId === null) return [];
    const values = [startedAtOf(callId), attemptIds(callId), callId];
    return (await this.pool.queries.query<RequestRow>(FIND_ATTEMPTS, values)).rows.map(requestView);
  }

  /** The last attempt of a call by its `call_id`; null if it has none, also outside the scope. */
  async lastAttempt(callId: string, scope: Scope = null): Promise<RequestView | null> {
    const values = [startedAtOf(callId), attemptIds(callId), callId];
    const { rows } = await this.pool.of(scope).query<RequestRow>(FIND_ATTEMPTS, values);
    const last = rows.at(-1);
    return last === undefined || scope?.includes(last.team_id) === false ? null : requestView(last);
  }

  /** Rows after this position, in the order in which Postgres stored them. */
  async recordedAfter(filter: RequestFilter, place: RecordedPlace, limit: number): Promise<RequestView[]> {
    const conditions = conditionsOf(filter);
    const at = conditions.placeholder(place.recorded_at);
    conditions.add(`recorded_at >= ${at} AND (recorded_at, id) > (${at}, ?)`, place.id);
    const count = conditions.placeholder(limit);
    const { rows } = await this.pool
      .of(filter.teams)
      .query<RequestRow>(
        `${SELECT_REQUESTS} ${conditions.where} ORDER BY recorded_at, id LIMIT ${count}`,
        conditions.values,
      );
    return rows.map(requestView);
  }

  /** The high watermark of the log. */
  recordedUntil(): Promise<Date> {
    return recordedUntil(this.pool.queries);
  }
}
