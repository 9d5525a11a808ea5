import { Injectable, Logger } from '@nestjs/common';
import type { Request } from 'express';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { DataSource } from 'typeorm';
import { ClientAddress, networkOf } from '../platform/client-address.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { describeError } from '../errors/describe-error.js';
import { GatewayError } from '../errors/gateway-error.js';
import type { Grant } from './caller.js';
import { FIND_GRANTS, type GrantRow, grantsOf } from './find-grants.js';
import { KeyCache } from './key-cache.js';
import { KeyChangesService } from './key-changes.service.js';
import { digestKey, isWellFormedKey } from '../keys/key-secret.js';
import { API_KEY_LENGTH } from '../platform/api-key.js';
import { KeyUseService } from './key-use.service.js';

/** Look-ups at a time; the rest of the pool stays free for everything else. */
const LOOKUPS_AT_ONCE = 8;
/** Look-ups that may wait for their turn; past it the caller is told to come back. */
const LOOKUPS_WAITING = 256;
/** Unknown keys that one client address (or IPv6 network) may try in a second: anybody can mint strings of the right form. */
const UNKNOWN_PER_SECOND = 50;
/** Twice the time between two confirmations of the whole cache. */
const FRESH_MS = 4_000;
/** How often a key is asked about while nobody confirms the cache. */
const ASK_AGAIN_MS = 1_000;
/** A read that something changed under is made again; after this many times what was read last is used once, unkept. */
const READS_AT_MOST = 3;

/** Answers the one question of the hot path: which grant, if any, does this key open right now? */
@Injectable()
export class KeyLookupService {
  /** Keys of the right form since the start: those whose answer was kept here, and those that Postgres was asked about. */
  readonly counts = { hits: 0, misses: 0 };
  private readonly logger = new Logger('Keys');
  private readonly flights = new Map<string, Promise<Grant | null>>();
  private readonly waiting: (() => void)[] = [];
  private readonly unknownTries = new RateLimiterMemory({ points: UNKNOWN_PER_SECOND, duration: 1 });
  private readonly clientAddress: ClientAddress;
  private running = 0;

  constructor(
    private readonly dataSource: DataSource,
    private readonly cache: KeyCache,
    private readonly changes: KeyChangesService,
    private readonly use: KeyUseService,
    @InjectSettings() private readonly env: Settings,
  ) {
    this.clientAddress = new ClientAddress(env.trustedProxies, 'full');
  }

  /**
   * @param from the request, for whose client address look-ups of unknown keys are counted
   * @returns the grant when the key is known, enabled and not past its end; else null
   * @throws GatewayError database_unavailable when Postgres cannot say (a valid key must never be called invalid), overloaded
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

  /** The grant of a key that was looked up before and is good; null says nothing about any other. */
  findKept(key: string): Grant | null {
    if (key.length !== API_KEY_LENGTH) return null;
    const grant = this.judge(this.kept(digestKey(key)) ?? null);
    if (grant !== null) this.counts.hits++;
    return grant;
  }

  /** What is kept of a key and may still be used; null: the key is known to be unknown; undefined: ask Postgres. */
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
   * Nobody has confirmed the cache for longer than it should take. Postgres may be away, or only the connection that
   * follows changes: what is kept goes on being used, and Postgres is asked behind, so that a revocation gets through.
   */
  private confirm(digest: string): void {
    this.read(digest).catch((error) =>
      this.logger.debug(`A key could not be confirmed: ${describeError(error)}`),
    );
  }

  /** Expiry is checked on every use: it comes without a change in Postgres. */
  private judge(grant: Grant | null): Grant | null {
    if (grant === null || !grant.enabled || grant.expiresAt <= Date.now()) return null;
    this.use.note(grant.secretId);
    return grant;
  }

  /** One look-up for all who ask for the same key at the same time. */
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
      const rows = await this.dataSource.query<GrantRow[]>(FIND_GRANTS, [[Buffer.from(digest, 'hex')]]);
      const grant = grantsOf(rows).get(digest) ?? null;
      if (this.cache.set(digest, grant, version) || reads === READS_AT_MOST) return grant;
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
