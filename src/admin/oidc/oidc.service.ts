import {
  BadRequestException,
  ForbiddenException,
  Injectable,
  Logger,
  NotFoundException,
} from '@nestjs/common';
import type { Configuration, IDToken, UserInfoResponse } from 'openid-client';
import type { Request, Response } from 'express';
import { LRUCache } from 'lru-cache';
import { hash } from 'node:crypto';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import type { Access } from '../access/access.js';
import type { Flow, FlowPurpose } from './flow-cookie.js';
import { describeMapping, roleOfGroups } from './group-roles.js';
import { NoRole } from './no-role.js';
import { patience } from '../../platform/patience.js';

const CALLBACK_PATH = '/admin/v1/oidc/callback';

/** For a request to the provider. */
const TIMEOUT = patience('an OpenID provider', 10_000);
/** Of `sub` (OpenID Connect Core 2), and of an e-mail address. */
const MAX_NAME_LENGTH = 255;

/** Groups of a user, and teams that they name, in one line of the log. */
const MAX_LOGGED = 50;

const TEAMS = 'SELECT id, name FROM team WHERE name = ANY ($1)';

/** Returns no row the second time. */
const USE = `
  WITH ended AS (DELETE FROM admin_sign_in WHERE expires_at <= now())
  INSERT INTO admin_sign_in (digest, expires_at) VALUES (decode($1, 'hex'), now() + interval '1 hour') ON CONFLICT DO NOTHING RETURNING 1`;

const FORGET = "DELETE FROM admin_sign_in WHERE digest = decode($1, 'hex')";
/** Sign-ins that the provider did not confirm, which this process remembers. */
const MAX_FAILED = 10_000;

/** The claims of a provider about a user. */
type Claims = (IDToken | UserInfoResponse) & Record<string, unknown>;

/** Who has signed in at the provider. */
export interface OidcIdentity {
  readonly issuer: string;
  readonly subject: string;
  /** What the audit log and keys call them, see nameOf(). */
  readonly name: string;
  /** What the provider calls them; null if it does not say, or with characters that nobody sees. */
  readonly displayName: string | null;
  /** The address that the provider vouches for; null if it does not. */
  readonly email: string | null;
  /** Those that are text; null: the claim is absent, or has none. */
  readonly groups: readonly string[] | null;
  /** The session at the provider, if it names it. */
  readonly sid: string | null;
  /** With which the provider is asked again, if it gives one. */
  readonly refreshToken: string | null;
}

/** What the provider says of a person later. */
export interface RefreshedIdentity {
  /** Undefined: it says nothing of the person; empty: they have none. */
  readonly groups: readonly string[] | undefined;
}

/** How the provider is asked. */
interface Configurations {
  /** With the signature of ID tokens checked too, not only that the provider's own endpoint sent them. */
  readonly checked: Configuration;
  /**
   * Without (OpenID Connect Core 1.0, 3.1.3.7, 6): where the keys of the provider could not be read, the next refresh token
   * would be lost with the response, and the one that was sent may not work any more.
   */
  readonly direct: Configuration;
}

/** Goes on with the request of a client, whose ID is `request`, and responds. @throws HttpException for a person who may not */
export type DeviceConfirmation = (
  identity: OidcIdentity,
  request: string,
  req: Request,
  res: Response,
) => Promise<void>;

/** Signs users in at an OpenID provider: authorization code flow with PKCE, state and nonce. */
@Injectable()
export class OidcService {
  /** Set by the module of the sign-ins. */
  deviceConfirmation: DeviceConfirmation | null = null;
  /** Notes who signs in to the console. Set by the module of people. @throws ForbiddenException for a person who was ended */
  admission: ((identity: OidcIdentity) => Promise<void>) | null = null;
  private readonly logger = new Logger('Admin');
  private configurations: Promise<Configurations> | undefined;
  /** Digests. In memory only: anybody can begin a sign-in and come back with a code of their own, as often as they like. */
  private readonly failed = new LRUCache<string, true>({ max: MAX_FAILED });

  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly dataSource: DataSource,
  ) {}

  get isOn(): boolean {
    return this.env.oidcIssuer !== undefined;
  }

  /** Begins a sign-in. @returns the URL at the provider, and what the callback must know @throws Error of the provider */
  async begin(purpose: FlowPurpose, returnTo: string): Promise<{ url: URL; flow: Omit<Flow, 'ends'> }> {
    const client = await import('openid-client');
    const { checked } = await this.connect();
    const flow = {
      purpose,
      state: client.randomState(),
      nonce: client.randomNonce(),
      verifier: client.randomPKCECodeVerifier(),
      returnTo,
    };
    const url = client.buildAuthorizationUrl(checked, {
      redirect_uri: this.publicUrl + CALLBACK_PATH,
      scope: this.env.oidcScopes,
      state: flow.state,
      nonce: flow.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(flow.verifier),
      code_challenge_method: 'S256',
    });
    return { url, flow };
  }

  /**
   * Ends a sign-in.
   *
   * @param target path and query of the callback
   * @throws BadRequestException the second time, before it asks the provider; ForbiddenException for a name that people
   *   cannot read; Error of the provider or of the checks of its response
   */
  async finish(target: string, flow: Flow): Promise<OidcIdentity> {
    const client = await import('openid-client');
    const { checked } = await this.connect();
    const digest = hash('sha256', flow.state, 'hex');
    const used = this.failed.has(digest) ? [] : await this.dataSource.query<object[]>(USE, [digest]);
    // Once more: one that came at the same time may have failed meanwhile, and removed its row.
    if (used.length === 0 || this.failed.has(digest))
      throw new BadRequestException('This sign-in was used already. Sign in again.');
    const checks = {
      expectedState: flow.state,
      expectedNonce: flow.nonce,
      pkceCodeVerifier: flow.verifier,
      idTokenExpected: true,
    };
    const tokens = await client
      .authorizationCodeGrant(checked, new URL(target, this.publicUrl), checks)
      .catch(async (error: unknown) => {
        this.failed.set(digest, true);
        // A row that stays goes when it expires.
        await this.dataSource.query(FORGET, [digest]).catch(() => {});
        throw error;
      });
    const idToken = tokens.claims()!;
    const { iss, sub } = idToken;
    let claims: Claims = idToken;
    // Some providers put groups only there.
    if (claims[this.env.oidcRoleClaim] === undefined && checked.serverMetadata().userinfo_endpoint) {
      claims = { ...claims, ...(await client.fetchUserInfo(checked, tokens.access_token, sub)) };
    }
    const groups = groupsOf(claims[this.env.oidcRoleClaim]);
    return {
      issuer: iss,
      subject: sub,
      name: nameOf(claims),
      displayName: displayNameOf(claims),
      email: emailOf(claims),
      groups: groups.length === 0 ? null : groups,
      sid: typeof idToken.sid === 'string' ? idToken.sid : null,
      refreshToken: tokens.refresh_token ?? null,
    };
  }

  /**
   * Asks the provider again about a person who has signed in.
   *
   * @param keep stores the next refresh token, before anything else is asked
   * @returns null if the provider has ended it, means somebody else, or is another one @throws Error of the provider
   */
  async refresh(
    refreshToken: string,
    { issuer, subject }: Pick<OidcIdentity, 'issuer' | 'subject'>,
    keep: (next: string) => Promise<void>,
  ): Promise<RefreshedIdentity | null> {
    const client = await import('openid-client');
    const { direct } = await this.connect();
    // The token must not reach another provider.
    if (!isNamed(issuer, direct.serverMetadata().issuer)) return null;
    const tokens = await client.refreshTokenGrant(direct, refreshToken).catch((error: unknown) => {
      if (error instanceof client.ResponseBodyError && error.error === 'invalid_grant') return null;
      throw error;
    });
    if (tokens === null) return null;
    if (tokens.refresh_token !== undefined) await keep(tokens.refresh_token);
    let claims: Claims | undefined = tokens.claims();
    // OpenID Connect Core 1.0, 12.2.
    if (claims !== undefined && (claims.iss !== issuer || claims.sub !== subject)) return null;
    const claim = this.env.oidcRoleClaim;
    if (claims?.[claim] === undefined && direct.serverMetadata().userinfo_endpoint) {
      claims = await client.fetchUserInfo(direct, tokens.access_token, client.skipSubjectCheck);
      // 5.3.2. Compared here: the library reports another subject as an error, as it does an outage.
      if (claims.sub !== subject) return null;
    }
    return { groups: claims && groupsOf(claims[claim]) };
  }

  /** @throws NotFoundException if no client can be signed in here; HttpException for a person who may not */
  async confirmDevice(...confirmed: Parameters<DeviceConfirmation>): Promise<void> {
    if (this.deviceConfirmation === null) throw new NotFoundException('Not found.');
    await this.deviceConfirmation(...confirmed);
  }

  /**
   * The role of a user in the console.
   *
   * @param address of the client @throws NoRole
   */
  async accessOf(
    { issuer, subject, name, groups: given }: OidcIdentity,
    address: string | null,
  ): Promise<Access> {
    const groups = given ?? [];
    const { access, missing } = await roleOfGroups(groups, this.env, (names) => this.findTeams(names));
    if (access === null || missing.length > 0) this.tellMissing(name, groups, access !== null, missing);
    if (access === null) throw new NoRole(name, this.env.oidcRoleClaim, given, missing);
    return { ...access, actor: { name, address }, userId: `sso:${issuer}#${subject}`, tokenId: null };
  }

  private get publicUrl(): string {
    return this.env.publicUrl!;
  }

  /** IDs of the teams with these names, by name. */
  private async findTeams(names: string[]): Promise<Map<string, string>> {
    const teams = await this.dataSource.query<{ id: string; name: string }[]>(TEAMS, [names]);
    return new Map(teams.map(({ id, name }) => [name, id]));
  }

  /** What an administrator needs to find the mistake in the mapping or at the provider. Texts of the provider are quoted. */
  private tellMissing(name: string, groups: readonly string[], mayEnter: boolean, missing: string[]): void {
    const teams = missing.length === 0 ? '' : ` Teams that do not exist: ${quoted(missing)}.`;
    if (mayEnter) return this.logger.log(`${name} signs in without some teams.${teams}`);
    this.logger.warn(`${name} may not sign in: no group has a role. ${this.describeGroups(groups)}${teams}`);
  }

  /** The same of a person who may not sign in from a client. */
  tellNoTeam({ name, groups }: OidcIdentity): void {
    const why = 'none of their teams has sign_in, is enabled, and is open to them';
    this.logger.warn(`${name} may not sign in from a client: ${why}. ${this.describeGroups(groups ?? [])}`);
  }

  private describeGroups(groups: readonly string[]): string {
    return `Groups in the claim ${this.env.oidcRoleClaim}: ${quoted(groups)}. Mapping: ${describeMapping(this.env)}.`;
  }

  /** Reads the provider's metadata once. After an error, the next sign-in tries again. */
  private connect(): Promise<Configurations> {
    if (!this.isOn) throw new NotFoundException('Single sign-on is not configured (OIDC_ISSUER).');
    this.configurations ??= this.discover().catch((error: unknown) => {
      this.configurations = undefined;
      throw error;
    });
    return this.configurations;
  }

  private async discover(): Promise<Configurations> {
    const client = await import('openid-client');
    const { oidcIssuer, oidcClientId, oidcClientSecret: secret } = this.env;
    // The schema allows plain HTTP on this machine only.
    const execute = oidcIssuer!.startsWith('http:') ? [client.allowInsecureRequests] : [];
    const options = { execute, timeout: TIMEOUT.ms / 1_000 };
    const found = await client.discovery(new URL(oidcIssuer!), oidcClientId!, secret, undefined, options);
    const server = found.serverMetadata();
    // The default of the specification (OpenID Connect Discovery 1.0, 3).
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const authenticate = methods.includes('client_secret_basic')
      ? client.ClientSecretBasic(secret)
      : client.ClientSecretPost(secret);
    const configure = () => {
      const configuration = new client.Configuration(server, oidcClientId!, secret, authenticate);
      configuration.timeout = TIMEOUT.ms / 1_000;
      for (const apply of execute) apply(configuration);
      return configuration;
    };
    const checked = configure();
    client.enableNonRepudiationChecks(checked);
    return { checked, direct: configure() };
  }
}

/** Whether the metadata of a provider name this issuer. Those of several Entra tenants have a template: `…/{tenantid}/v2.0`. */
function isNamed(issuer: string, named: string): boolean {
  if (!URL.canParse(issuer)) return false;
  const [one, other] = [new URL(issuer), new URL(named)];
  return named.includes('{') ? one.origin === other.origin : one.href === other.href;
}

/** A claim with one group or a list of them. */
function groupsOf(claim: unknown): string[] {
  const list: unknown[] = Array.isArray(claim) ? claim : [claim];
  return list.filter((group): group is string => typeof group === 'string');
}

/** Characters that people do not see: with them, two names could look the same. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/u;

/**
 * What the audit log and keys call a user: `sso:` with the e-mail address if the provider vouches for it, else `sso:sub:`
 * with the ID at the provider. Only for people to read: what a user owns belongs to Access.userId.
 *
 * @throws ForbiddenException for a name that people cannot read
 */
function nameOf(claims: Claims): string {
  const email = emailOf(claims);
  for (const name of email === null ? [claims.sub] : [email, claims.sub])
    if (INVISIBLE.test(name) || name.length > MAX_NAME_LENGTH)
      throw new ForbiddenException(
        'Your e-mail address or ID at the sign-in provider is too long or has invisible characters. Ask an administrator.',
      );
  return email === null ? `sso:sub:${claims.sub}` : `sso:${email}`;
}

/** The e-mail address, if the provider vouches for it. */
function emailOf({ email, email_verified: verified }: Claims): string | null {
  return typeof email === 'string' && verified === true && /^[^:@]+@[^@]+$/.test(email) ? email : null;
}

function displayNameOf({ name }: Claims): string | null {
  const isReadable =
    typeof name === 'string' && name.trim() !== '' && !INVISIBLE.test(name) && name.length <= MAX_NAME_LENGTH;
  return isReadable ? name.trim() : null;
}

function quoted(texts: readonly string[]): string {
  return JSON.stringify(texts.slice(0, MAX_LOGGED).map((text) => text.slice(0, MAX_NAME_LENGTH)));
}
