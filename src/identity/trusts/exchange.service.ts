import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { DatabaseService } from '../../database/database.service.js';
import { describeError } from '../../errors/describe-error.js';
import { keptAddress, networkOf } from '../../platform/client-address.js';
import { CLOSE_TIMEOUT, withTimeout } from '../../platform/patience.js';
import { checkClaims, namedClaims } from './check-claims.js';
import { RejectedToken, readIdentityToken } from './identity-token.js';
import { issueToken } from './issued-tokens.js';
import { IssuerKeys } from './issuer-keys.service.js';
import { type KnownTrust, TrustDirectory } from './trust-directory.service.js';
import { TrustFailures } from './trust-failures.service.js';

/** Tokens that one client address (or IPv6 network) may have verified in a second: a signature takes processor time. */
const PER_SECOND = 50;
const USES_MS = 10_000;
const LOG_MS = 60_000;
const ENDED = 'the trust, its key or its team is disabled, expired or revoked';

/** Locked in one order, so that replicas never wait for each other. */
const WRITE_USES = `
  WITH u AS MATERIALIZED (SELECT id, LEAST(at, now()) AS at FROM unnest($1::uuid[], $2::timestamptz[]) AS use (id, at)),
  locked AS MATERIALIZED (SELECT id FROM trust WHERE id IN (SELECT id FROM u) ORDER BY id FOR NO KEY UPDATE)
  UPDATE trust tr SET last_used_at = u.at FROM u JOIN locked USING (id)
  WHERE tr.id = u.id AND (tr.last_used_at IS NULL OR tr.last_used_at < u.at)`;

/** What an exchange comes to. */
export type ExchangeResult =
  | { readonly kind: 'issued'; readonly token: string; readonly expiresIn: number }
  | { readonly kind: 'rejected' }
  /** Too many at a time, from one address or of one trust. */
  | { readonly kind: 'busy'; readonly retryAfter: number }
  | { readonly kind: 'unavailable' };

/** Exchanges identity tokens for tokens of keys. */
@Injectable()
export class ExchangeService implements OnApplicationShutdown {
  /** Exchanges since the start, by result. */
  readonly counts = new Map<string, number>();
  private readonly logger = new Logger('Trusts');
  private readonly tries = new RateLimiterMemory({ points: PER_SECOND, duration: 1 });
  private uses = new Map<string, number>();
  /** When the next line about a trust and reason may be logged (monotonic ms). */
  private readonly logged = new Map<string, number>();

  constructor(
    private readonly directory: TrustDirectory,
    private readonly keys: IssuerKeys,
    private readonly failures: TrustFailures,
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /**
   * Counts one try of a client address.
   *
   * @returns seconds to wait; 0 if it may be tried
   */
  async waitOf(address: string | null): Promise<number> {
    const network = networkOf(address ?? 'unknown');
    return this.tries.consume(network).then(
      () => 0,
      () => 1,
    );
  }

  /** @param name of the trust @param address of the client; null if it is unknown */
  async exchange(name: string, text: string, address: string | null): Promise<ExchangeResult> {
    const result = await this.attempt(name, text, address);
    this.counts.set(result.kind, (this.counts.get(result.kind) ?? 0) + 1);
    return result;
  }

  private async attempt(name: string, text: string, address: string | null): Promise<ExchangeResult> {
    if ((await this.waitOf(address)) > 0) return { kind: 'busy', retryAfter: 1 };
    try {
      return await this.issue(name, text, address, true);
    } catch (error) {
      if (error instanceof RejectedToken) {
        this.log(name, error, address);
        return { kind: error.reason === 'keys_unavailable' ? 'unavailable' : 'rejected' };
      }
      this.logger.warn(`A token could not be issued: ${describeError(error)}`);
      return { kind: 'unavailable' };
    }
  }

  private async issue(
    name: string,
    text: string,
    address: string | null,
    mayRepeat: boolean,
  ): Promise<ExchangeResult> {
    const token = readIdentityToken(text);
    const trust = this.directory.find(name);
    if (trust === undefined) throw new RejectedToken('unknown_trust', 'no trust has this name');
    // First, so that nothing is read from an issuer that is no longer trusted.
    if (!trust.enabled) throw new RejectedToken('disabled', 'the trust is disabled');
    await this.keys.verify(trust, token);
    let isRepeated = false;
    try {
      const { oidcClientId } = this.env;
      const { subject, from, until } = checkClaims(token, trust, { address, oidcClientId });
      const request = { trustId: trust.id, version: trust.version, subject, from, until };
      const issued = await issueToken(this.dataSource, request);
      if (issued.token !== null) {
        this.uses.set(trust.id, Date.now());
        return { kind: 'issued', token: issued.token, expiresIn: issued.lifeS };
      }
      if (!issued.allowed) {
        await this.directory.refresh();
        const present = this.directory.find(name);
        // Changed since this process read it: once more, on its present terms.
        isRepeated = mayRepeat && present !== undefined && !isSame(present, trust);
        if (isRepeated) return await this.issue(name, text, address, false);
        throw new RejectedToken('disabled', ENDED);
      }
      if (issued.full) return { kind: 'busy', retryAfter: issued.waitS };
      throw issued.now > until
        ? new RejectedToken('expired', 'it has expired')
        : new RejectedToken('not_yet_valid', 'its iat or nbf is in the future');
    } catch (error) {
      if (error instanceof RejectedToken && !isRepeated && this.directory.find(name)?.id === trust.id)
        this.failures.note(trust.id, error.words, namedClaims(token, trust));
      throw error;
    }
  }

  @Interval(USES_MS)
  async writeUses(): Promise<void> {
    if (this.uses.size === 0 || this.database.notReady !== null) return;
    const batch = this.uses;
    this.uses = new Map();
    try {
      const times = [...batch.values()].map((time) => new Date(time).toISOString());
      await this.dataSource.query(WRITE_USES, [[...batch.keys()], times]);
    } catch (error) {
      this.logger.warn(`The last use of trusts could not be written; retrying: ${describeError(error)}`);
      for (const [id, time] of batch) if (!this.uses.has(id)) this.uses.set(id, time);
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await withTimeout(CLOSE_TIMEOUT.ms, this.writeUses());
  }

  /** One line a minute for each trust and reason. Names of trusts that do not exist are anybody's words. */
  private log(name: string, { reason, detail }: RejectedToken, address: string | null): void {
    const known = this.directory.find(name) === undefined ? 'an unknown trust' : `the trust ${name}`;
    const now = performance.now();
    if ((this.logged.get(known + reason) ?? 0) > now) return;
    this.logged.set(known + reason, now + LOG_MS);
    const kept = address === null ? null : keptAddress(address, this.env.requestLogClient);
    const from = kept === null ? '' : `, from ${kept}`;
    this.logger.warn(`Rejected a token for ${known}: ${reason} (${detail})${from}`);
  }
}

/** Not by the version alone: a trust may have been deleted, and another one created with its name. */
function isSame(one: KnownTrust, other: KnownTrust): boolean {
  return one.id === other.id && one.version === other.version;
}
