import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Grant } from './caller.js';

/** A grant, and when Postgres itself last said so (monotonic ms). */
export interface KeptGrant {
  readonly grant: Grant;
  readonly confirmedAt: number;
  /** When it was last asked about anew while nobody else could confirm it. */
  askedAt: number;
}

/** Keys that are kept; some 300 bytes each. */
export const MOST_GRANTS = 50_000;
/** Unknown keys that are kept, so that a client with a dead key asks Postgres once in a while only. */
const MOST_UNKNOWN = 10_000;
const UNKNOWN_MS = 2_000;

/**
 * What Postgres said of keys, by digest. Whatever is read carries the version at which the reading began, and is kept
 * only if nothing was invalidated since: a read that started before a revocation can never overwrite it.
 */
@Injectable()
export class KeyCache {
  private readonly grants = new LRUCache<string, KeptGrant>({ max: MOST_GRANTS });
  private readonly unknown = new LRUCache<string, true>({ max: MOST_UNKNOWN, ttl: UNKNOWN_MS });
  private changes = 0;

  /** Goes up with every invalidation. */
  get version(): number {
    return this.changes;
  }

  /** The grant; null: the key is known to be unknown; undefined: ask Postgres. */
  get(digest: string): KeptGrant | null | undefined {
    return this.grants.get(digest) ?? (this.unknown.has(digest) ? null : undefined);
  }

  /** @returns false when something changed since the reading began: what was read may be outdated */
  set(digest: string, grant: Grant | null, readAtVersion: number): boolean {
    if (readAtVersion !== this.changes) return false;
    if (grant !== null) this.keep(digest, grant);
    else this.unknown.set(digest, true);
    return true;
  }

  /** Forgets the grants of a key or of a team's keys, and every unknown key: the change may have made one known. */
  forget(keyOrTeamId: string): void {
    this.changes++;
    this.unknown.clear();
    for (const [digest, { grant }] of this.grants.entries()) {
      if (grant.keyId === keyOrTeamId || grant.teamId === keyOrTeamId) this.grants.delete(digest);
    }
  }

  /** Digests of all grants that are kept, for a comparison with Postgres. */
  digests(): string[] {
    return [...this.grants.keys()];
  }

  /** Puts what a comparison found in place of what was kept; what it did not find is gone. */
  replace(compared: readonly string[], found: ReadonlyMap<string, Grant>): void {
    this.changes++;
    this.unknown.clear();
    for (const digest of compared) {
      const grant = found.get(digest);
      // peek keeps the order of use: a comparison is no use.
      if (this.grants.peek(digest) === undefined) continue;
      if (grant === undefined) this.grants.delete(digest);
      else this.keep(digest, grant);
    }
  }

  private keep(digest: string, grant: Grant): void {
    const now = performance.now();
    this.grants.set(digest, { grant, confirmedAt: now, askedAt: now });
  }

  get size(): number {
    return this.grants.size;
  }
}
