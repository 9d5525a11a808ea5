import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { teamNamesOf } from '../../admin/oidc/group-roles.js';
import { OidcService, type RefreshedIdentity } from '../../admin/oidc/oidc.service.js';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { describeError } from '../../errors/describe-error.js';
import type { Actor } from '../../platform/actor.js';
import { patience } from '../../platform/patience.js';
import { type EndReason, endSignIns } from './end-sign-ins.js';
import { GOES_ON } from './in-force.js';
import { SignInIdpSecrets } from './idp-secrets.service.js';

/** How many sign-ins one process asks the provider about at a time. */
const MOST_AT_ONCE = 20;
/** Longer than the provider is waited for, twice. If the process that asks is killed, another one asks then. */
const CLAIM = `interval '30 seconds'`;
/** Clients wait for 10 seconds. */
const WAIT = patience('the check of a sign-in', 8_000);
const LOOK_MS = 200;
/** How long a sign-in goes on without a response of the provider: as long as one that cannot be checked. */
const UNCHECKED = `interval '8 hours'`;

/**
 * The sign-in of a refresh token that has not been used. One that has only gives its tokens again, and one of a sign-in that is
 * over gives none: a claim would stay, and who sends it again would wait for its end.
 */
const CLAIM_IT = `
  UPDATE sign_in si SET renewing_until = now() + ${CLAIM}
  FROM refresh_token r, person p, gateway_key k, team t
  WHERE r.digest = $1 AND r.used_at IS NULL AND si.id = r.sign_in_id AND p.id = si.person_id AND k.id = si.key_id
    AND t.id = k.team_id AND ${GOES_ON}
    AND si.idp_refresh IS NOT NULL AND COALESCE(si.renewing_until <= now(), true)
  RETURNING si.id, si.idp_refresh, p.issuer, p.subject, t.name AS team,
            si.created_at > now() - ${UNCHECKED} AS is_new, si.idp_checked_at > now() - ${UNCHECKED} AS is_checked`;

/** By this or another process: its claim may have ended without a response since, so this does not look for it. */
const IS_TO_BE_ASKED = `
  SELECT FROM refresh_token r JOIN sign_in si ON si.id = r.sign_in_id JOIN person p ON p.id = si.person_id
  JOIN gateway_key k ON k.id = si.key_id JOIN team t ON t.id = k.team_id
  WHERE r.digest = $1 AND r.used_at IS NULL AND si.idp_refresh IS NOT NULL AND ${GOES_ON}`;

/** One that has ended meanwhile has no token of the provider any more. */
const KEEP = 'UPDATE sign_in SET idp_refresh = $2 WHERE id = $1 AND ended_at IS NULL';
const CHECKED = 'UPDATE sign_in SET idp_checked_at = now() WHERE id = $1';
const RELEASE = 'UPDATE sign_in SET renewing_until = NULL WHERE id = $1';

/** Who ends a sign-in of which the provider says so when it is renewed. */
const BY_PROVIDER: Actor = { name: 'oidc-check', address: null };

interface Claimed {
  id: string;
  idp_refresh: Buffer;
  issuer: string;
  subject: string;
  team: string;
  is_new: boolean;
  is_checked: boolean;
}

/**
 * Asks the OpenID provider, before a sign-in is renewed, whether its person is still there and in the team. One process at a
 * time asks about a sign-in, and no transaction is open meanwhile.
 */
@Injectable()
export class ProviderCheck {
  private readonly logger = new Logger('SignIn');
  private asking = 0;

  constructor(
    private readonly dataSource: DataSource,
    private readonly oidc: OidcService,
    private readonly secrets: SignInIdpSecrets,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /**
   * Ends the sign-in if the provider says so. Otherwise it stays claimed until its tokens are issued.
   *
   * @param digest of the refresh token
   * @returns false if neither the provider nor another process that asks it has answered in time
   * @throws errors of the database
   */
  async confirm(digest: Buffer): Promise<boolean> {
    const end = performance.now() + WAIT.ms;
    for (;;) {
      // Not claimed before its turn: the claim could end meanwhile, and another process would send the same token.
      if (this.asking < MOST_AT_ONCE) {
        const confirmed = await this.attempt(digest);
        if (confirmed !== null) return confirmed;
      }
      if (performance.now() > end) return false;
      await sleep(LOOK_MS);
    }
  }

  /** @returns null while another process asks */
  private async attempt(digest: Buffer): Promise<boolean | null> {
    this.asking++;
    try {
      // TypeORM returns the rows of an UPDATE with their number.
      const [[claimed]] = await this.dataSource.query<[Claimed[], number]>(CLAIM_IT, [digest]);
      if (claimed !== undefined) return await this.askAbout(claimed);
      const others = await this.dataSource.query<object[]>(IS_TO_BE_ASKED, [digest]);
      // Nothing to ask: it was used, has ended, or the provider gave no token to ask with.
      return others.length === 0 ? true : null;
    } finally {
      this.asking--;
    }
  }

  private async askAbout(claimed: Claimed): Promise<boolean> {
    const { id, team } = claimed;
    let refreshed: RefreshedIdentity | null;
    const refreshToken = this.secrets.tryOpen(id, claimed.idp_refresh);
    if (refreshToken === undefined) {
      this.logger.warn(
        'The token to ask the OpenID provider with cannot be decrypted: MASTER_KEY is another.',
      );
      // It would not end by itself for weeks, and its client would wait.
      return claimed.is_checked ? true : this.end(id, 'provider');
    }
    try {
      refreshed = await this.ask(claimed, refreshToken);
    } catch (error) {
      this.logger.warn(`The OpenID provider could not be asked about a sign-in: ${describeError(error)}`);
      if (!claimed.is_checked) await this.dataSource.query(RELEASE, [id]);
      return claimed.is_checked;
    }
    if (refreshed === null) return this.end(id, 'provider');
    const { groups } = refreshed;
    // The provider says nothing of the person, so it is as if there were no token to ask with.
    if (groups === undefined) return claimed.is_new ? true : this.end(id, 'provider');
    const { led, own } = teamNamesOf(groups, this.env);
    if (![...led, ...own].includes(team)) return this.end(id, 'no_team');
    await this.dataSource.query(CHECKED, [id]);
    return true;
  }

  private ask({ id, issuer, subject }: Claimed, refreshToken: string): Promise<RefreshedIdentity | null> {
    return this.oidc.refresh(refreshToken, { issuer, subject }, async (next) => {
      // At once: the one that was sent may not work any more.
      await this.dataSource.query(KEEP, [id, this.secrets.seal(id, next)]);
    });
  }

  private async end(id: string, reason: EndReason): Promise<true> {
    await this.dataSource.transaction(async (manager) => {
      await endSignIns(manager, [{ id }], reason, BY_PROVIDER);
      await manager.query(RELEASE, [id]);
    });
    return true;
  }
}
