import { Injectable } from '@nestjs/common';
import type { RequestFilter } from './request-query.js';
import type { RequestView } from './request-view.js';

/** Which rows of an archive are read: those that started before a time, and after a row in the order of the list. */
export interface ArchivePage {
  before: Date;
  after: { startedAt: Date; id: string } | null;
  limit: number;
}

/** Reads rows that the request log no longer has. */
export interface ArchiveReader {
  /** Newest first. */
  list(filter: RequestFilter, page: ArchivePage): Promise<RequestView[]>;
  /** When the newest call before this time started; null if there is none. */
  newest(filter: RequestFilter, before: Date): Promise<Date | null>;
  /** @returns null if there is no such row, or it is outside of the scope */
  get(id: string, startedAt: Date, teams: readonly string[] | null): Promise<RequestView | null>;
}

/** The archive of the request log. A module registers one. */
@Injectable()
export class LogArchive {
  /** Null: there is none. */
  reader: ArchiveReader | null = null;
}
