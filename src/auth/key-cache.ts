import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Grant } from './caller.js';

/** A grant, and when Postgres last confirmed it (monotonic ms). */
export interface CachedGrant {
  readonly grant: Grant;
  readonly confirmedAt: number;
  /** When it was last looked up again while the cache was not confirmed (monotonic ms). */
  askedAt: number;
}

/** Maximum number of cached static secrets, and of cached tokens, about 500 bytes each (bench/RESULTS.md, issued tokens). */
export const MAX_GRANTS = 50_000;
/** Maximum number of cached unknown keys, so that a client with an invalid key rarely causes a query. */
const MAX_UNKNOWN = 10_000;
const UNKNOWN_MS = 2_000;
/** As `max`, which allocates the space for all entries when the cache is created. */
const atMost = (count: number) => ({ maxSize: count, sizeCalculation: () => 1 });

/**
 * Caches grants by digest. Each read carries the version at which it started and is stored only if nothing was invalidated
 * since, so a read that started before a revocation never overwrites it.
 */
@Injectable()
export class KeyCache {
  /** Of static secrets. */
  private readonly keys = new LRUCache<string, CachedGrant>(atMost(MAX_GRANTS));
  /** Of tokens, which jobs use for minutes: on their own, so that they never evict a key. */
  private readonly tokens = new LRUCache<string, CachedGrant>(atMost(MAX_GRANTS));
  private readonly unknown = new LRUCache<string, true>({ ...atMost(MAX_UNKNOWN), ttl: UNKNOWN_MS });
  private readonly caches = [this.keys, this.tokens];
  private changes = 0;

  /** Increases with every invalidation. */
  get version(): number {
    return this.changes;
  }

  /** The grant; null if the key is known not to exist; undefined if it is not cached. */
  get(digest: string): CachedGrant | null | undefined {
    return this.keys.get(digest) ?? this.tokens.get(digest) ?? (this.unknown.has(digest) ? null : undefined);
  }

  /** @returns false if something was invalidated since the read started: the result may be outdated */
  set(digest: string, grant: Grant | null, readAtVersion: number): boolean {
    if (readAtVersion !== this.changes) return false;
    if (grant !== null) this.keep(digest, grant);
    else {
      // It was deleted, and the change feed has not reported it.
      for (const cache of this.caches) cache.delete(digest);
      this.unknown.set(digest, true);
    }
    return true;
  }

  /**
   * Invalidates the grants of a key, of a team's keys, of one token or of all that end with something, and all unknown keys,
   * because the change may have created one.
   */
  forget(id: string): void {
    this.changes++;
    this.unknown.clear();
    for (const [digest, { grant }] of this.keys.entries())
      if (grant.keyId === id || grant.teamId === id) this.keys.delete(digest);
    for (const [digest, { grant }] of this.tokens.entries()) {
      const { keyId, teamId, secretId, parents } = grant;
      if (keyId === id || teamId === id || secretId === id || parents.includes(id))
        this.tokens.delete(digest);
    }
  }

  /** The same for many, also of static secrets, in one pass. */
  forgetAll(ids: ReadonlySet<string>): void {
    this.changes++;
    this.unknown.clear();
    for (const cache of this.caches)
      for (const [digest, { grant }] of cache.entries()) {
        const { keyId, teamId, secretId, parents } = grant;
        if ([keyId, teamId, secretId, ...parents].some((id) => ids.has(id))) cache.delete(digest);
      }
  }

  /** Digests of all cached grants, for a comparison with Postgres. */
  digests(): string[] {
    return this.caches.flatMap((cache) => [...cache.keys()]);
  }

  /** Replaces the compared grants; those that were not found are removed. */
  replace(compared: readonly string[], found: ReadonlyMap<string, Grant>): void {
    this.changes++;
    this.unknown.clear();
    for (const digest of compared) {
      const grant = found.get(digest);
      // peek() keeps the order of use, because a comparison is not a use.
      const cache = this.caches.find((each) => each.peek(digest) !== undefined);
      if (cache === undefined) continue;
      if (grant === undefined) cache.delete(digest);
      else this.keep(digest, grant);
    }
  }

  private keep(digest: string, grant: Grant): void {
    const now = performance.now();
    const cache = grant.kind === 'key' ? this.keys : this.tokens;
    cache.set(digest, { grant, confirmedAt: now, askedAt: now });
  }

  get size(): number {
    return this.keys.size + this.tokens.size;
  }
}
