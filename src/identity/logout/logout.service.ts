import { Injectable, Logger } from '@nestjs/common';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { DataSource } from 'typeorm';
import { endSessions } from '../../admin/sessions/end-sessions.js';
import { SessionRecorder } from '../../admin/sessions/session-recorder.js';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { networkOf } from '../../platform/client-address.js';
import { endSignIns, type SignInsToEnd } from '../sign-in/end-sign-ins.js';
import { readIdentityToken, RejectedToken } from '../trusts/identity-token.js';
import { IssuerKeys } from '../trusts/issuer-keys.service.js';
import { type Logout, readLogout } from './logout-token.js';

/** Wrong signatures that one address may have checked in a second: each takes processor time. */
const MOST_WRONG = 50;
const LOG_MS = 60_000;

/** The person of a subject, and whoever has a sign-in of a session. */
const FIND_PERSON = 'SELECT id FROM person WHERE issuer = $1 AND subject = $2';

export type LogoutResult = 'done' | 'rejected' | 'busy' | 'unavailable';

/**
 * Ends what began at the OpenID provider when the provider says that somebody has signed out (OpenID Connect Back-Channel
 * Logout 1.0). Static keys stay: to sign out is not to leave.
 */
@Injectable()
export class BackChannelLogout {
  private readonly logger = new Logger('SignIn');
  private readonly wrong = new RateLimiterMemory({ points: MOST_WRONG, duration: 1 });
  /** When a line of the log may be repeated (monotonic ms). Anybody can cause one. */
  private readonly logged = new Map<string, number>();

  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly keys: IssuerKeys,
    private readonly sessions: SessionRecorder,
    private readonly dataSource: DataSource,
  ) {}

  get isOn(): boolean {
    return this.env.oidcIssuer !== undefined;
  }

  /** @param address of the provider; null if it is unknown @throws errors of the database */
  async logout(text: string, address: string | null): Promise<LogoutResult> {
    try {
      const logout = await this.read(text, networkOf(address ?? 'unknown'));
      if (logout === null) {
        this.warn(
          `Logout tokens are not read: one address sends more than ${MOST_WRONG} a second with a wrong signature. ` +
            'If the OpenID provider is behind the same proxy, add the proxy to TRUSTED_PROXIES',
        );
        return 'busy';
      }
      await this.end(logout, address);
      return 'done';
    } catch (error) {
      if (!(error instanceof RejectedToken)) throw error;
      this.warn(`Rejected a logout token: ${error.reason} (${error.detail})`);
      return error.reason === 'keys_unavailable' ? 'unavailable' : 'rejected';
    }
  }

  /** @returns null if too many tokens of the network had a wrong signature @throws RejectedToken */
  private async read(text: string, network: string): Promise<Logout | null> {
    const { oidcIssuer, oidcClientId } = this.env;
    const token = readIdentityToken(text);
    const logout = readLogout(token, oidcIssuer!, oidcClientId!, Date.now() / 1000);
    const issuer = { id: 'single sign-on', version: 0, issuer: oidcIssuer!, jwks: null };
    const wrong = await this.wrong.get(network);
    if (wrong !== null && wrong.remainingPoints === 0) return null;
    try {
      await this.keys.verify(issuer, token);
    } catch (error) {
      // Only these count: a provider may end the sessions of many people at once.
      if (error instanceof RejectedToken && error.reason === 'signature') await this.wrong.penalty(network);
      throw error;
    }
    return logout;
  }

  private warn(line: string): void {
    const now = performance.now();
    if ((this.logged.get(line) ?? 0) > now) return;
    this.logged.set(line, now + LOG_MS);
    this.logger.warn(`${line} (logged once a minute)`);
  }

  private async end({ issuer, subject, sid }: Logout, address: string | null): Promise<void> {
    const by = { name: 'oidc-logout', address };
    await this.dataSource.transaction(async (manager) => {
      const which: SignInsToEnd[] = sid === null ? [] : [{ idpSid: sid }];
      const [person] =
        subject === null ? [] : await manager.query<{ id: string }[]>(FIND_PERSON, [issuer, subject]);
      // Without a session of their own, they end with any of the person.
      if (person !== undefined)
        which.push({ personId: person.id, ...(sid !== null && { withoutSid: true }) });
      await endSignIns(manager, which, 'provider', by);
      // After the sign-ins, as when a person is ended.
      const whose = {
        ...(subject !== null && { userId: `sso:${issuer}#${subject}` }),
        ...(sid !== null && { idpSid: sid }),
      };
      await endSessions(manager, this.sessions, whose, by);
    });
  }
}
