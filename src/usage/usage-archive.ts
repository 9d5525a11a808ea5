import { Injectable } from '@nestjs/common';
import type { UsageGroup } from './usage-groups.js';
import type { UsageRequest, UsageSqlRow } from './usage-query.js';
import type { UsageSums } from './usage.schema.js';

/** A page of groups of an archive. */
export interface ArchivedUsage {
  rows: UsageSqlRow[];
  /** Null on a page that continues another. */
  totals: UsageSums | null;
  /** The archive has all rows that were recorded before. */
  until: Date;
}

/** Adds up rows that Postgres no longer has, and all newer ones. */
export interface UsageArchiveReader {
  /** @param groups as inOrder() returns them @param zone IANA name */
  list(groups: readonly UsageGroup[], request: UsageRequest, zone: string): Promise<ArchivedUsage>;
}

/** The source of usage for times of which Postgres has no more sums. A module registers a reader. */
@Injectable()
export class UsageArchive {
  /** Null: there is none. */
  reader: UsageArchiveReader | null = null;
}
