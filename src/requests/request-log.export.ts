import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { type ExportFormatter, FORMATTERS } from './export-format.js';
import { ReaderPool } from './reader-pool.js';
import { idOfCursor } from '../database/page.js';
import { DAY_MS, oldestDay } from '../request-log/partitions.js';
import { recordedUntil } from '../request-log/recorded-until.js';
import { archivedPages } from './archive-export.js';
import { LogArchive } from './log-archive.js';
import { after, conditionsOf, type RequestFilter, startedAtOf } from './request-query.js';
import type { RequestView } from './request-view.js';
import type { ExportFormat } from './requests.schema.js';

/** Rows fetched, formatted and written at a time, which limits the memory. */
const BATCH = 500;

/** An export whose client reads nothing for this long is ended: it holds a snapshot and locks. */
const IDLE_MS = 60_000;

/** By the column and so by the index: `started_at` alone is the text of the result, by which Postgres would sort the whole log. */
export const NEWEST_FIRST = 'ORDER BY request_log.started_at DESC, request_log.id DESC';

/** Makes `pg` return values as text, since they are written as text again. */
const AS_TEXT = { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig;

export interface ExportRequest extends RequestFilter {
  format: ExportFormat;
  /** Maximum number of rows; absent: all. */
  limit?: number;
  /** Cursor of a list; the export starts after it. */
  cursor?: string;
}

/** Exports the rows of the request log as one text of any length, in the order of the list. */
@Injectable()
export class RequestLogExport {
  constructor(
    private readonly pool: ReaderPool,
    private readonly archive: LogArchive = new LogArchive(),
  ) {}

  /**
   * Starts an export and fetches its first rows. The caller must close it.
   *
   * @param signal closes it, also while the first rows are being fetched
   * @throws ServiceError invalid for a foreign cursor; conflict if there is an archive that does not respond
   */
  async open({ format, limit, cursor, ...filter }: ExportRequest, signal?: AbortSignal): Promise<OpenExport> {
    const client = await this.pool.exports.connect();
    const opened = new OpenExport(client, format, this.pool.queries);
    signal?.addEventListener('abort', () => void opened.close());
    try {
      signal?.throwIfAborted();
      const until = await recordedUntil(client);
      const conditions = conditionsOf(filter);
      if (filter.recorded_after !== undefined) conditions.add('recorded_at <= ?', until);
      after(conditions, cursor);
      const count = limit === undefined ? '' : `LIMIT ${conditions.placeholder(limit)}`;
      const rest = `${conditions.where} ${NEWEST_FIRST} ${count}`;
      await opened.begin(rest, conditions.values);
      await opened.continueWith(await this.archived(client, filter, cursor, limit));
      // Never before the time that the reader already has.
      opened.until = new Date(Math.max(until.getTime(), filter.recorded_after?.getTime() ?? 0));
      return opened;
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

  /** In the transaction of the export, which keeps the days that it reads from being dropped. */
  private async archived(
    client: pg.PoolClient,
    filter: RequestFilter,
    cursor: string | undefined,
    limit = Number.POSITIVE_INFINITY,
  ): Promise<Older> {
    const { reader } = this.archive;
    if (reader === null) return null;
    const before = await oldestDay(client);
    // A day after the oldest one has begun, no older call is recorded any more.
    const recordedAfter = (filter.recorded_after?.getTime() ?? 0) - DAY_MS;
    if (Math.max(filter.from?.getTime() ?? 0, recordedAfter) >= before.getTime()) return null;
    const id = idOfCursor(cursor);
    const after = id === null ? null : { startedAt: startedAtOf(id), id };
    return (count) => archivedPages(reader, filter, { before, after, limit: limit - count });
  }
}

/** Rows of days that the log no longer has, given how many the log had; null if none are asked for. */
type Older = ((count: number) => AsyncGenerator<RequestView[]>) | null;

/** An export in progress: a server-side cursor on a connection of its own. */
export class OpenExport {
  /** `recorded_after` of the export that continues this one. */
  until = new Date(0);
  private readonly broke = new AbortController();
  private first: (string | null)[][] = [];
  private older: Older = null;
  /** The first page of the archive, if the log has no more than one. */
  private firstOlder: { rows: AsyncGenerator<RequestView[]>; page: IteratorResult<RequestView[]> } | null =
    null;
  private isBusy = false;
  private closed: Promise<void> | null = null;

  constructor(
    private readonly client: pg.PoolClient,
    readonly format: ExportFormat,
    /** Pool from which a running step is cancelled. */
    private readonly others: pg.Pool,
  ) {
    // While the client reads slowly, no query is running that could report the error.
    client.on('error', (error) => this.broke.abort(error));
  }

  private get formatter(): ExportFormatter {
    return FORMATTERS[this.format];
  }

  get contentType(): string {
    return this.formatter.contentType;
  }

  /** Aborted when the connection breaks. */
  get broken(): AbortSignal {
    return this.broke.signal;
  }

  async begin(rest: string, values: unknown[]): Promise<void> {
    await this.run({ text: 'BEGIN READ ONLY' });
    await this.run({ text: `SET LOCAL idle_in_transaction_session_timeout = ${IDLE_MS}` });
    await this.run({
      text: `DECLARE export NO SCROLL CURSOR FOR ${this.formatter.select(rest)}`,
      values,
    });
    this.first = await this.fetch();
  }

  /** Rows that follow those of the log. An archive that does not respond is noticed here, if it comes next. */
  async continueWith(older: Older): Promise<void> {
    this.older = older;
    if (older === null || this.first.length === BATCH) return;
    const rows = older(this.first.length);
    this.firstOlder = { rows, page: await rows.next() };
  }

  /** The text in chunks; the next rows are fetched when the last ones were consumed. */
  async *chunks(): AsyncGenerator<string> {
    yield this.formatter.head;
    let count = 0;
    for (let rows = this.first; rows.length > 0; rows = await this.fetch()) {
      yield this.formatter.text(rows);
      count += rows.length;
      if (rows.length < BATCH) break;
    }
    if (this.older === null) return;
    // Reading the archive may take longer than a transaction may be idle.
    await this.run({ text: 'COMMIT' });
    if (this.firstOlder?.page.done === false) yield this.formatter.archived(this.firstOlder.page.value);
    for await (const rows of this.firstOlder?.rows ?? this.older(count)) yield this.formatter.archived(rows);
  }

  /** Closes the export and its connection, also during a step. */
  close(): Promise<void> {
    this.closed ??= this.end();
    return this.closed;
  }

  private fetch(): Promise<(string | null)[][]> {
    return this.run({ text: `FETCH ${BATCH} FROM export` });
  }

  private async run(query: { text: string; values?: unknown[] }): Promise<(string | null)[][]> {
    this.isBusy = true;
    try {
      const config = { ...query, rowMode: 'array' as const, types: AS_TEXT };
      return (await this.client.query<(string | null)[]>(config)).rows;
    } finally {
      this.isBusy = false;
    }
  }

  private async end(): Promise<void> {
    if (this.isBusy && !this.broken.aborted) {
      // A server that runs a query does not notice a closed connection.
      const { processID } = this.client as unknown as { processID: number };
      await this.others.query('SELECT pg_cancel_backend($1)', [processID]).catch(() => {});
    }
    // Closed, not returned to the pool: that ends the session with its transaction.
    this.client.release(true);
  }
}
