import { Inject, Injectable, Logger, Optional } from '@nestjs/common';
import type { Request } from 'express';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { ClientAddress, networkOf } from '../platform/client-address.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { KnownEnds } from '../database/known-ends/known-ends.js';
import { LookupPool } from '../database/lookup-pool.js';
import { describeError } from '../errors/describe-error.js';
import { GatewayError } from '../errors/gateway-error.js';
import type { Grant } from './caller.js';
import { FIND_GRANTS, type GrantRow, grantsOf } from './find-grants.js';
import { KeyCache } from './key-cache.js';
import { KeyChangesService } from './key-changes.service.js';
import { digestKey, isWellFormedKey } from '../keys/key-secret.js';
import { API_KEY_LENGTH } from '../platform/api-key.js';
import { KeyUseService } from './key-use.service.js';

/** Concurrent look-ups; the other connections of the pool stay free for other queries. */
const LOOKUPS_AT_ONCE = 8;
/** Look-ups that may wait; further ones get `overloaded`. */
const LOOKUPS_WAITING = 256;
/** Unknown keys that one client address (or IPv6 network) may try in a second: anybody can generate well-formed keys. */
const UNKNOWN_PER_SECOND = 50;
/** Twice the time between two confirmations of the whole cache. */
const FRESH_MS = 4_000;
/** How often a key is looked up again while the cache is not confirmed. */
const ASK_AGAIN_MS = 1_000;
/** A read during a change is repeated; after this many reads the last result is used once and not cached. */
const MAX_READS = 3;

/** The provider of the LimitsOfKeys, if the gateway has them. The module of the limits provides it. */
export const LIMITS_OF_KEYS = Symbol('LimitsOfKeys');

export interface LimitsOfKeys {
  /** Awaited before a key that was looked up is used: its limits are at least those of this version. */
  reach(version: bigint): Promise<void>;
}

/** Resolves a key to its grant, on the hot path. */
@Injectable()
export class KeyLookupService {
  /** Look-ups of well-formed keys since the start: cached ones, and those that queried Postgres. */
  readonly counts = { hits: 0, misses: 0 };
  private readonly logger = new Logger('Keys');
  private readonly flights = new Map<string, Promise<Grant | null>>();
  private readonly waiting: (() => void)[] = [];
  private readonly unknownTries = new RateLimiterMemory({ points: UNKNOWN_PER_SECOND, duration: 1 });
  private readonly clientAddress: ClientAddress;
  private running = 0;

  constructor(
    private readonly pool: LookupPool,
    private readonly cache: KeyCache,
    private readonly changes: KeyChangesService,
    private readonly use: KeyUseService,
    private readonly ends: KnownEnds,
    @InjectSettings() private readonly env: Settings,
    @Optional() @Inject(LIMITS_OF_KEYS) private readonly limits: LimitsOfKeys | null = null,
  ) {
    this.clientAddress = new ClientAddress(env.trustedProxies, 'full');
  }

  /**
   * @param from the request; look-ups of unknown keys are limited by its client address
   * @returns the grant if the key exists, is enabled and not expired; else null
   * @throws GatewayError database_unavailable if Postgres does not respond (a valid key must never be called invalid), overloaded
   */
  find(key: string, from: Request): Grant | null | Promise<Grant | null> {
    if (!isWellFormedKey(key)) return null;
    const digest = digestKey(key);
    const kept = this.kept(digest);
    if (kept === undefined) {
      this.counts.misses++;
      return this.load(digest, from).then((grant) => this.judge(grant));
    }
    this.counts.hits++;
    return this.judge(kept);
  }

  /** Increases with every change of a key. */
  get version(): number {
    return this.cache.version;
  }

  /**
   * Whether the key of a call is still valid. It is looked up again only if a key has changed since, or it has expired.
   *
   * @throws GatewayError as find() does
   */
  isStillValid(req: Request): boolean | Promise<boolean> {
    const { grant, key, version } = req.caller;
    if (version === undefined || (version === this.cache.version && grant.expiresAt > Date.now()))
      return true;
    const found = this.find(key, req);
    return found instanceof Promise ? found.then((one) => one !== null) : found !== null;
  }

  /** The grant of a cached valid key; null if the key is not cached or not valid. */
  findCached(key: string): Grant | null {
    if (key.length !== API_KEY_LENGTH) return null;
    const grant = this.judge(this.kept(digestKey(key)) ?? null);
    if (grant !== null) this.counts.hits++;
    return grant;
  }

  /** The cached grant that may still be used; null if the key is known not to exist; undefined if it must be looked up. */
  private kept(digest: string): Grant | null | undefined {
    const known = this.cache.get(digest);
    if (known === null || known === undefined) return known;
    const now = performance.now();
    const age = now - Math.max(known.confirmedAt, this.changes.verifiedAt);
    if (age > this.env.keyCacheStaleMs) return undefined;
    if (age > FRESH_MS && now - known.askedAt > ASK_AGAIN_MS) {
      known.askedAt = now;
      this.confirm(digest);
    }
    return known.grant;
  }

  /**
   * The cache has not been confirmed for too long. Postgres may be unavailable, or only the connection that follows
   * changes. The cached grant is still used, and the key is looked up in the background, so that a revocation takes effect.
   */
  private confirm(digest: string): void {
    this.read(digest).catch((error) =>
      this.logger.debug(`A key could not be confirmed: ${describeError(error)}`),
    );
  }

  /** Expiry is checked on every use, because no change in Postgres announces it. */
  private judge(grant: Grant | null): Grant | null {
    if (grant === null || !grant.enabled || grant.expiresAt <= Date.now()) return null;
    this.use.note(grant);
    return grant;
  }

  /** Shares one look-up between concurrent calls with the same key. */
  private load(digest: string, from: Request): Promise<Grant | null> {
    const flight = this.flights.get(digest);
    if (flight !== undefined) return flight;
    const started = this.loadAlone(digest, this.networkOf(from)).finally(() => this.flights.delete(digest));
    this.flights.set(digest, started);
    return started;
  }

  private async loadAlone(digest: string, network: string): Promise<Grant | null> {
    await this.unknownTries.consume(network).catch(() => {
      throw new GatewayError('overloaded');
    });
    await this.turn();
    try {
      const grant = await this.read(digest);
      if (grant !== null) await this.unknownTries.reward(network);
      return grant;
    } catch (error) {
      throw new GatewayError('database_unavailable', { cause: error });
    } finally {
      const next = this.waiting.shift();
      if (next !== undefined) next();
      else this.running--;
    }
  }

  private networkOf(from: Request): string {
    const forwardedFor = from.headers['x-forwarded-for'];
    const list = Array.isArray(forwardedFor) ? forwardedFor.join(',') : forwardedFor;
    return networkOf(this.clientAddress.of(from.socket.remoteAddress, list) ?? 'unknown');
  }

  private async read(digest: string): Promise<Grant | null> {
    for (let reads = 1; ; reads++) {
      const { version } = this.cache;
      const rows = await this.pool.query<GrantRow[]>(FIND_GRANTS, [[Buffer.from(digest, 'hex')]]);
      const grant = grantsOf(rows, this.ends).get(digest) ?? null;
      if (grant !== null) await this.limits?.reach(BigInt(rows[0]!.limits_version));
      if (this.cache.set(digest, grant, version) || reads === MAX_READS) return grant;
    }
  }

  private turn(): Promise<void> | void {
    if (this.running < LOOKUPS_AT_ONCE) {
      this.running++;
      return;
    }
    if (this.waiting.length >= LOOKUPS_WAITING) throw new GatewayError('overloaded');
    return new Promise((resolve) => this.waiting.push(resolve));
  }
}
