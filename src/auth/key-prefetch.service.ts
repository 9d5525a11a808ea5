import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { describeError } from '../errors/describe-error.js';
import { DatabaseService } from '../database/database.service.js';
import { KnownEnds } from '../database/known-ends/known-ends.js';
import { LookupPool } from '../database/lookup-pool.js';
import { FIND_GRANTS, type GrantRow, grantsOf } from './find-grants.js';
import { KeyCache, MAX_GRANTS } from './key-cache.js';

/** Keys read in one query: building their grants blocks the event loop for a few milliseconds. */
const BATCH = 1_000;
const DIGEST_BYTES = 32;
/** A batch is read again if a key changed meanwhile. A key that is not cached is looked up at its first use. */
const MAX_READS = 3;

const mostRecent = (kinds: string) => `
    (SELECT s.digest, s.last_used_at
    FROM gateway_key_secret s
    JOIN gateway_key k ON k.id = s.key_id
    JOIN team t ON t.id = k.team_id
    WHERE ${kinds}
      AND k.revoked_at IS NULL AND NOT k.disabled AND NOT t.disabled
      AND COALESCE(LEAST(k.expires_at, s.expires_at) > now(), true)
    ORDER BY s.last_used_at DESC NULLS LAST
    LIMIT $1)`;

/**
 * Digests of the active keys, the most recently used first, in one value: a row for each would take longer to read. Of tokens,
 * those of the last minutes: most live longer than the job that they were issued to. They have a cache of their own, and so a
 * limit of their own.
 */
const FIND_RECENT_DIGESTS = `
  SELECT string_agg(digest, ''::bytea ORDER BY last_used_at DESC NULLS LAST) AS digests
  FROM (${mostRecent(`s.kind = 'key'`)}
    UNION ALL${mostRecent(`s.kind <> 'key' AND s.last_used_at > now() - interval '10 minutes'`)}) recent`;

/**
 * Loads the active keys into the cache after the start. Look-ups of keys that are not cached are limited by client
 * address, so that valid keys behind a shared address would otherwise compete with a flood of unknown ones.
 */
@Injectable()
export class KeyPrefetchService implements OnModuleDestroy {
  private readonly logger = new Logger('Keys');
  private isStarted = false;
  private isStopped = false;

  constructor(
    private readonly pool: LookupPool,
    private readonly cache: KeyCache,
    private readonly ends: KnownEnds,
    database: DatabaseService,
  ) {
    database.whenReady(() => {
      if (!this.isStarted) void this.run();
      this.isStarted = true;
      return Promise.resolve();
    });
  }

  onModuleDestroy(): void {
    this.isStopped = true;
  }

  private async run(): Promise<void> {
    try {
      const [row] = await this.pool.query<{ digests: Buffer | null }[]>(FIND_RECENT_DIGESTS, [MAX_GRANTS]);
      const all = row!.digests ?? Buffer.alloc(0);
      for (let at = 0; at < all.length && !this.isStopped; at += BATCH * DIGEST_BYTES)
        await this.load(all.subarray(at, at + BATCH * DIGEST_BYTES));
    } catch (error) {
      if (this.isStopped) return;
      this.logger.warn(
        `Not all active keys could be loaded at the start; each is looked up at its first use: ${describeError(error)}`,
      );
    }
  }

  private async load(digests: Buffer): Promise<void> {
    const batch = Array.from({ length: digests.length / DIGEST_BYTES }, (_, i) =>
      digests.subarray(i * DIGEST_BYTES, (i + 1) * DIGEST_BYTES),
    );
    for (let reads = 1, isKept = false; !isKept && reads <= MAX_READS; reads++) {
      const { version } = this.cache;
      const rows = await this.pool.query<GrantRow[]>(FIND_GRANTS, [batch]);
      isKept = [...grantsOf(rows, this.ends)].every(([digest, grant]) =>
        this.cache.set(digest, grant, version),
      );
    }
  }
}
