import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { compactVerify } from 'jose';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { DatabaseService } from '../../database/database.service.js';
import { describeError } from '../../errors/describe-error.js';
import { ALGORITHMS, type IdentityToken, RejectedToken } from './identity-token.js';
import { IssuerReader } from './issuer-reader.js';
import { KeySet } from './jwks.js';
import type { Trust } from './trust.entity.js';

const EVERY_MS = 600_000;
/** A `kid` that is not known leads to another reading at most this often: anybody can make one up. */
const AGAIN_MS = 30_000;
/** If the issuer is unavailable, the keys that were last read serve for so long. */
const MAX_AGE_MS = 86_400_000;
/**
 * An issuer counts as unavailable once its readings have failed for as long as from one scheduled reading to the next, but for
 * some delay: anybody can cause others, and two soon after each other are a blip.
 */
const UNAVAILABLE_MS = EVERY_MS - AGAIN_MS;

const FIND_ISSUERS = 'SELECT DISTINCT issuer FROM trust WHERE enabled AND jwks IS NULL';

const EMIT = `SELECT webhook_emit('issuer.unavailable', $1::jsonb, $2)`;

interface Known {
  keys: KeySet | null;
  /** When they were read (monotonic ms). */
  readAt: number;
  /** When they were last asked for. */
  askedAt: number;
  /** When the first of the last readings was, all of which failed (monotonic ms); null if the last one succeeded. */
  failingSince: number | null;
  reading: Promise<void> | null;
}

/** A trust, as far as its keys are concerned. */
type Signer = Pick<Trust, 'id' | 'version' | 'issuer' | 'jwks'>;

/**
 * The public keys of the issuers that trusts name, read ahead, so that no exchange waits for an issuer; and those of OIDC_ISSUER
 * once a logout has needed them.
 */
@Injectable()
export class IssuerKeys {
  private readonly logger = new Logger('Trusts');
  private readonly known = new Map<string, Known>();
  /** Keys that a trust has itself, by the trust and its version. */
  private readonly stored = new Map<string, { version: number; keys: KeySet }>();

  constructor(
    private readonly reader: IssuerReader,
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    @InjectSettings() private readonly env: Settings,
  ) {
    database.whenReady(() => {
      void this.refresh();
      return Promise.resolve();
    });
  }

  /** Ages of the keys of each issuer in seconds; Infinity if they were never read. */
  ages(): [issuer: string, seconds: number][] {
    const now = performance.now();
    return [...this.known].map(([issuer, { keys, readAt }]) => [
      issuer,
      keys === null ? Infinity : (now - readAt) / 1000,
    ]);
  }

  /** @throws RejectedToken if the issuer of the trust has not signed it */
  async verify(trust: Signer, token: IdentityToken): Promise<void> {
    const key = await this.find(trust, token);
    try {
      await compactVerify(token.text, key, { algorithms: [...ALGORITHMS] });
    } catch (error) {
      throw new RejectedToken(
        'signature',
        `its signature is not that of the issuer (${(error as Error).name})`,
      );
    }
  }

  /**
   * The key that a token names.
   *
   * @throws RejectedToken unknown_key, or keys_unavailable
   */
  private async find(trust: Signer, { kid, alg }: IdentityToken) {
    const unknown = () => new RejectedToken('unknown_key', 'no key of the issuer has its kid and algorithm');
    if (trust.jwks !== null) {
      const key = await this.storedKeys(trust).find(kid, alg);
      if (key === null) throw unknown();
      return key;
    }
    const known = this.of(trust.issuer);
    if (this.isFresh(known)) {
      const key = await known.keys!.find(kid, alg);
      if (key !== null) return key;
    }
    await this.readAgain(trust.issuer, known);
    if (!this.isFresh(known))
      throw new RejectedToken('keys_unavailable', 'the keys of the issuer could not be read');
    const key = await known.keys!.find(kid, alg);
    if (key === null) throw unknown();
    return key;
  }

  /** Reads the keys of all issuers again. */
  @Interval(EVERY_MS)
  async refresh(): Promise<void> {
    if (this.database.notReady !== null) return;
    try {
      const rows = await this.dataSource.query<{ issuer: string }[]>(FIND_ISSUERS);
      const named = rows.map(({ issuer }) => issuer);
      const { oidcIssuer } = this.env;
      if (oidcIssuer !== undefined && this.known.has(oidcIssuer) && !named.includes(oidcIssuer))
        named.push(oidcIssuer);
      for (const issuer of this.known.keys()) if (!named.includes(issuer)) this.known.delete(issuer);
      await Promise.all(named.map((issuer) => this.read(issuer, this.of(issuer))));
    } catch (error) {
      this.logger.warn(`Issuers could not be listed: ${describeError(error)}`);
    }
  }

  private storedKeys({ id, version, jwks }: Pick<Trust, 'id' | 'version' | 'jwks'>): KeySet {
    const found = this.stored.get(id);
    if (found?.version === version) return found.keys;
    const keys = new KeySet(jwks!);
    this.stored.set(id, { version, keys });
    return keys;
  }

  private of(issuer: string): Known {
    let known = this.known.get(issuer);
    if (known === undefined) {
      known = { keys: null, readAt: 0, askedAt: -Infinity, failingSince: null, reading: null };
      this.known.set(issuer, known);
    }
    return known;
  }

  private isFresh({ keys, readAt }: Known): boolean {
    return keys !== null && performance.now() - readAt < MAX_AGE_MS;
  }

  private async readAgain(issuer: string, known: Known): Promise<void> {
    if (known.reading === null && performance.now() - known.askedAt < AGAIN_MS) return;
    await this.read(issuer, known);
  }

  private read(issuer: string, known: Known): Promise<void> {
    known.reading ??= this.readOnce(issuer, known).finally(() => (known.reading = null));
    return known.reading;
  }

  private async readOnce(issuer: string, known: Known): Promise<void> {
    known.askedAt = performance.now();
    try {
      known.keys = new KeySet(await this.reader.keysOf(issuer));
      known.readAt = performance.now();
      known.failingSince = null;
    } catch (error) {
      known.failingSince ??= known.askedAt;
      const why = describeError(error);
      this.logger.warn(`The keys of the issuer ${issuer} could not be read: ${why}`);
      if (known.askedAt - known.failingSince >= UNAVAILABLE_MS) await this.announce(issuer, why);
    }
  }

  /** Once a day for an issuer. */
  private async announce(issuer: string, reason: string): Promise<void> {
    const once = `issuer.unavailable ${issuer} ${new Date().toISOString().slice(0, 10)}`;
    try {
      await this.dataSource.query(EMIT, [JSON.stringify({ issuer, reason }), once]);
    } catch (error) {
      this.logger.warn(`An alert could not be stored: ${describeError(error)}`);
    }
  }
}
