import { Injectable } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { ChangeFeed, type Subscription } from '../database/change-feed.js';
import { KnownEnds } from '../database/known-ends/known-ends.js';
import { FIND_GRANTS, type GrantRow, grantsOf } from './find-grants.js';
import { KeyCache } from './key-cache.js';

/** Digests compared in one query. */
const COMPARED_AT_ONCE = 5_000;

/** Keeps the key cache consistent: invalidates what changed, and compares all of it if a change may have been missed. */
@Injectable()
export class KeyChangesService {
  private readonly subscription: Subscription;

  constructor(
    private readonly cache: KeyCache,
    private readonly ends: KnownEnds,
    feed: ChangeFeed,
  ) {
    ends.onChanged((ids) => this.cache.forgetAll(new Set(ids)));
    this.subscription = feed.subscribe('keys', {
      onChange: (id) => this.cache.forget(id),
      compare: (client) => this.compare(client),
    });
  }

  /** When Postgres last confirmed the whole cache (monotonic ms). */
  get verifiedAt(): number {
    return this.subscription.verifiedAt;
  }

  /** Reads all cached keys again. */
  private async compare(client: ClientBase): Promise<void> {
    const digests = this.cache.digests();
    for (let at = 0; at === 0 || at < digests.length; at += COMPARED_AT_ONCE) {
      const part = digests.slice(at, at + COMPARED_AT_ONCE);
      const before = this.cache.version;
      const values = [part.map((digest) => Buffer.from(digest, 'hex'))];
      const { rows } = await client.query<GrantRow>(FIND_GRANTS, values);
      if (this.cache.version !== before) return this.compare(client);
      this.cache.replace(part, grantsOf(rows, this.ends));
    }
  }
}
