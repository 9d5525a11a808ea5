import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { countOfChanges, LatestReading } from '../../database/change-counter.js';
import { ChangeFeed } from '../../database/change-feed.js';
import { DatabaseService } from '../../database/database.service.js';
import type { Terms } from './check-claims.js';
import type { Trust } from './trust.entity.js';

/** Every trust in one snapshot, with the count of changes it reflects. No row: a null id. */
const READ = `
  SELECT c.value AS counted, tr.id, tr.name, tr.version, tr.preset, tr.issuer, tr.audience, tr.jwks, tr.claims,
         tr.cidrs::text[] AS cidrs, tr.longest_jwt_minutes AS "longestJwtMinutes", tr.enabled
  FROM (${countOfChanges('trusts')}) c LEFT JOIN trust tr ON true`;

/** A trust as exchanges see it. */
export type KnownTrust = Terms & Pick<Trust, 'id' | 'name' | 'version' | 'jwks' | 'enabled'>;

/** Finds the trust of each exchange. It holds all of them in memory, because there are few, and anybody may ask for any name. */
@Injectable()
export class TrustDirectory {
  private byName: ReadonlyMap<string, KnownTrust> = new Map();
  private readonly latest = new LatestReading<Row>((rows) => {
    this.byName = new Map(rows.filter(({ id }) => id !== null).map((row) => [row.name, row]));
  });

  constructor(
    private readonly dataSource: DataSource,
    feed: ChangeFeed,
    database: DatabaseService,
  ) {
    database.whenReady(() => this.refresh());
    feed.subscribe('trusts', {
      onChange: null,
      compare: (client) => this.latest.take(async () => (await client.query<Row>(READ)).rows),
    });
  }

  /** False if there is none that is enabled. */
  get isUsed(): boolean {
    for (const { enabled } of this.byName.values()) if (enabled) return true;
    return false;
  }

  find(name: string): KnownTrust | undefined {
    return this.byName.get(name);
  }

  /** Reads the trusts now, so that a change made by this process takes effect before its response. */
  async refresh(): Promise<void> {
    await this.latest.take(() => this.dataSource.query<Row[]>(READ));
  }
}

type Row = KnownTrust & { counted: string };
