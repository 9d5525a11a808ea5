import { randomBytes } from 'node:crypto';
import { ForbiddenException, HttpException, Injectable, Logger } from '@nestjs/common';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { DataSource, type EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { teamNamesOf } from '../../admin/oidc/group-roles.js';
import type { OidcIdentity } from '../../admin/oidc/oidc.service.js';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { isUniqueViolation } from '../../database/sql-state.js';
import { RecentSignIns } from '../../keys/recent-sign-ins.service.js';
import type { Actor } from '../../platform/actor.js';
import { networkOf } from '../../platform/client-address.js';
import type { SignInSettings } from '../../teams/sign-in.js';
import { OauthError } from '../oauth/parameters.js';
import { KEEPS_OUT } from '../people/keeps-out.js';
import { actorNameOf, ownerOf } from '../people/person-names.js';
import { DeviceIdpSecrets } from './idp-secrets.service.js';
import { PersonKeys } from './person-keys.service.js';
import { digestOf, SignInSecrets } from './sign-in-secrets.service.js';

export const REQUEST_SECONDS = 600;
export const POLL_SECONDS = 5;

/** Of one client address (or IPv6 network). */
const STARTS_PER_MINUTE = 30;
const MOST_PENDING = 10_000;
const MOST_OF_NETWORK = 100;
const LOG_MS = 60_000;
/** Wrong codes that one address may type. There are 20^8, of which few are pending. */
const WRONG_CODES = { points: 10, duration: 600 };
const NOT_OPEN = 'This team does not let you sign in from a client.';

/** Sorted by the index: all expire after the same time, so the first to expire is the oldest. */
const oldest = (which: string) => `
  (SELECT id FROM device_request WHERE state = 'pending' AND expires_at > now() AND ${which}
   ORDER BY expires_at LIMIT 1 FOR UPDATE SKIP LOCKED)`;

/**
 * Past the most of one network, its oldest that nobody has opened is deleted. Past the most of all, the oldest that nobody has
 * opened, or else that nobody has signed in with: whoever began it may open it too. It is looked for only then.
 */
const START = `
  WITH mine AS MATERIALIZED (
    SELECT count(*) >= ${MOST_OF_NETWORK} AS is_full FROM device_request
    WHERE client_network = ANY ($5::text[]) AND state = 'pending' AND expires_at > now()),
  pending AS MATERIALIZED (
    SELECT count(*) = ${MOST_PENDING} AS is_full FROM (
      SELECT FROM device_request WHERE state = 'pending' AND expires_at > now() LIMIT ${MOST_PENDING}) counted),
  dropped AS (
    DELETE FROM device_request WHERE id = CASE
      WHEN (SELECT is_full FROM mine)
        THEN ${oldest('client_network = ANY ($5::text[]) AND opened_at IS NULL')}
      WHEN (SELECT is_full FROM pending)
        THEN COALESCE(${oldest('opened_at IS NULL')}, ${oldest('person_id IS NULL')})
    END
    RETURNING 1),
  started AS (
    INSERT INTO device_request
      (id, device_digest, user_code_digest, surface, client_network, client_ip, program, interval_s, expires_at)
    SELECT $1, $2, $3, $4, ($5::text[])[1], $6, $7, ${POLL_SECONDS}, now() + interval '${REQUEST_SECONDS} seconds'
    WHERE EXISTS (SELECT FROM dropped)
      OR NOT (SELECT is_full FROM mine) AND NOT (SELECT is_full FROM pending)
    RETURNING 1)
  SELECT is_full, EXISTS (SELECT FROM started) AS is_started FROM pending`;

const OPEN = `
  UPDATE device_request SET opened_at = COALESCE(opened_at, now())
  WHERE user_code_digest = ANY ($1) AND state = 'pending' AND expires_at > now() RETURNING id`;

const FIND_PERSON = `SELECT id, ended_at IS NOT NULL AS ended FROM person WHERE issuer = $1 AND subject = $2`;

/** Before its person, as when it is confirmed, or the person is ended. */
const LOCK_REQUEST = 'SELECT FROM device_request WHERE id = $1 FOR UPDATE';

/** A key that was revoked keeps the person out of its team, until they are let in again. */
const FIND_TEAMS = `
  SELECT t.id, t.name FROM team t
  WHERE t.name = ANY ($1) AND NOT t.disabled AND t.sign_in IS NOT NULL AND NOT EXISTS (
    SELECT FROM person p JOIN gateway_key k ON ${KEEPS_OUT} WHERE p.id = $2 AND k.team_id = t.id)
  ORDER BY t.name`;

const SAVE_PERSON = `
  INSERT INTO person (id, issuer, subject, name, email) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (issuer, subject) DO UPDATE SET name = EXCLUDED.name, email = EXCLUDED.email
  RETURNING id`;

const IDENTIFY = `
  UPDATE device_request
  SET person_id = $2, team_ids = $3, approval_digest = $4, idp_sid = $5, idp_refresh = $6
  WHERE id = $1 AND state = 'pending' AND expires_at > now() RETURNING id`;

const FIND_IDENTIFIED = `
  SELECT d.id, d.surface, host(d.client_ip) AS client_ip, d.program, d.created_at,
         p.id AS person_id, p.name AS person, p.email, p.subject,
         (SELECT json_agg(json_build_object('id', t.id, 'name', t.name) ORDER BY t.name)
          FROM team t WHERE t.id = ANY (d.team_ids)) AS teams
  FROM device_request d JOIN person p ON p.id = d.person_id
  WHERE d.approval_digest = $1 AND d.state = 'pending' AND d.expires_at > now()`;

/** Waits for the end of a person, and for other sign-ins of theirs. */
const LOCK_PERSON = `SELECT ended_at IS NOT NULL AS ended FROM person WHERE id = $1 FOR NO KEY UPDATE`;

const FIND_TEAM = `SELECT sign_in FROM team WHERE id = $1 AND NOT disabled AND sign_in IS NOT NULL FOR SHARE`;

const APPROVE = `UPDATE device_request SET state = 'approved', key_id = $2 WHERE id = $1`;

const DENY = `
  UPDATE device_request SET state = 'denied', idp_refresh = NULL
  WHERE approval_digest = $1 AND state = 'pending' RETURNING id`;

interface Started {
  is_full: boolean;
  is_started: boolean;
}

/** What a client says of itself, and where it is. */
export interface Client {
  surface: string;
  /** As it is; null if it is unknown. */
  address: string | null;
  /** As REQUEST_LOG_CLIENT says. */
  keptAddress: string | null;
  userAgent: string | null;
}

/** A request whose person the provider has confirmed. */
export interface IdentifiedRequest {
  id: string;
  surface: string;
  client_ip: string | null;
  program: string | null;
  created_at: Date;
  person_id: string;
  person: string;
  email: string | null;
  subject: string;
  teams: { id: string; name: string }[] | null;
}

/** A person who is known and may not sign in here. `message` is for them. */
export class NoSignIn extends ForbiddenException {}

/** None of the teams of a person lets them in. */
export class NoTeam extends NoSignIn {
  /** @param user who it is @param names of teams that their groups name */
  constructor(
    readonly user: string,
    readonly names: readonly string[],
  ) {
    super('None of your teams lets you sign in from a client.');
  }
}

/** The request is not there any more, or was not this browser's. */
export class RequestGone extends HttpException {
  constructor() {
    super('This request has ended. Start again in the terminal.', 410);
  }
}

/** Requests of clients to be signed in, from their start to the confirmation by a person. */
@Injectable()
export class DeviceRequests {
  private readonly logger = new Logger('SignIn');
  /** When it was last logged that the most of all are pending (monotonic ms). */
  private fullAt = -Infinity;
  private readonly starts = new RateLimiterMemory({ points: STARTS_PER_MINUTE, duration: 60 });
  private readonly wrongCodes = new RateLimiterMemory(WRONG_CODES);

  constructor(
    private readonly dataSource: DataSource,
    private readonly secrets: SignInSecrets,
    private readonly idpSecrets: DeviceIdpSecrets,
    private readonly keys: PersonKeys,
    private readonly recent: RecentSignIns,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /** @throws OauthError for too many; errors of the database */
  async start(client: Client): Promise<{ deviceCode: string; userCode: string }> {
    const network = networkOf(client.address ?? 'unknown');
    await this.starts.consume(network).catch(() => {
      throw new OauthError('temporarily_unavailable', 'Too many sign-ins from one address.', 429, 60);
    });
    for (;;) {
      const [deviceCode, userCode] = [this.secrets.newDeviceCode(), this.secrets.newUserCode()];
      const { surface, keptAddress, userAgent } = client;
      const values = [
        ...[uuidv7(), digestOf(deviceCode), this.secrets.userCodeDigests(userCode)[0], surface],
        ...[this.secrets.networkDigests(network), keptAddress, userAgent],
      ];
      try {
        const [result] = await this.dataSource.query<[Started]>(START, values);
        if (result.is_full) this.logFull(result.is_started);
        if (result.is_started) return { deviceCode, userCode };
        throw new OauthError('temporarily_unavailable', 'Too many sign-ins at a time. Try again.', 503, 30);
      } catch (error) {
        // One of some billion codes is taken: another is not.
        if (!isUniqueViolation(error, 'device_request_user_code_digest_key')) throw error;
      }
    }
  }

  private logFull(isStarted: boolean): void {
    const now = performance.now();
    if (now - this.fullAt < LOG_MS) return;
    this.fullAt = now;
    this.logger.warn(
      `${MOST_PENDING} sign-ins of clients are pending: ` +
        `${isStarted ? 'each new one deletes the oldest in which nobody has signed in' : 'new ones are rejected'} (logged once a minute)`,
    );
  }

  /**
   * The request of a code that a person has typed.
   *
   * @returns its ID; null for a wrong code @throws HttpException 429 for too many wrong ones from one address
   */
  async open(typed: string, address: string | null): Promise<string | null> {
    const network = networkOf(address ?? 'unknown');
    // Counted before it is looked up: otherwise many at once would be looked up before the first one counts.
    await this.wrongCodes.consume(network).catch(() => {
      throw new HttpException('Too many wrong codes. Try again in ten minutes.', 429);
    });
    const digests = this.secrets.userCodeDigests(typed);
    if (digests.length === 0) return null;
    let isWrong = false;
    try {
      const [[request]] = await this.dataSource.query<[{ id: string }[], number]>(OPEN, [digests]);
      isWrong = request === undefined;
      return request?.id ?? null;
    } finally {
      if (!isWrong) await this.wrongCodes.reward(network);
    }
  }

  /**
   * Binds a request to a person whom the provider has confirmed, and to their browser. They have signed in: it extends their
   * own keys, in all of their teams.
   *
   * @returns what this browser must show to confirm it
   * @throws NoSignIn for a person who may not; RequestGone
   */
  async identify(id: string, identity: OidcIdentity): Promise<string> {
    const { issuer, subject, displayName, email, sid, refreshToken } = identity;
    const { led, own } = teamNamesOf(identity.groups ?? [], this.env);
    const names = [...new Set([...led, ...own])];
    const secret = randomBytes(32).toString('base64url');
    await this.dataSource.transaction(async (manager) => {
      await manager.query(LOCK_REQUEST, [id]);
      const [known] = await manager.query<{ id: string; ended: boolean }[]>(FIND_PERSON, [issuer, subject]);
      mustNotBeEnded(known);
      const teams = await manager.query<{ id: string }[]>(FIND_TEAMS, [names, known?.id ?? null]);
      if (teams.length === 0) throw new NoTeam(email ?? subject, names);
      const name = displayName ?? email ?? subject;
      const [person] = await manager.query<[{ id: string }]>(SAVE_PERSON, [
        ...[uuidv7(), issuer, subject, name, email],
      ]);
      const sealed = refreshToken === null ? null : this.idpSecrets.seal(id, refreshToken);
      const [rows] = await manager.query<[object[], number]>(IDENTIFY, [
        ...[id, person.id, teams.map((team) => team.id), digestOf(secret), sid, sealed],
      ]);
      if (rows.length === 0) throw new RequestGone();
      await this.recent.extend(manager, ownerOf({ issuer, subject, email }), names);
    });
    return secret;
  }

  /** The request that a browser may confirm. @throws RequestGone */
  find(secret: string): Promise<IdentifiedRequest> {
    return findIdentified(this.dataSource.manager, secret);
  }

  /**
   * Lets the client have a key of the person in a team.
   *
   * @throws RequestGone; NoSignIn if the person or the team may not any more
   */
  async approve(secret: string, teamId: string, address: string | null): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      const { person_id: personId, email, subject, id, teams } = await findIdentified(manager, secret, true);
      const [person] = await manager.query<{ ended: boolean }[]>(LOCK_PERSON, [personId]);
      mustNotBeEnded(person);
      const [team] = await manager.query<{ sign_in: SignInSettings }[]>(FIND_TEAM, [teamId]);
      const known = teams?.find((one) => one.id === teamId);
      if (known === undefined || team === undefined) throw new NoSignIn(NOT_OPEN);
      const by: Actor = { name: actorNameOf({ email, subject }), address };
      const holder = { id: personId, label: email ?? `sub:${subject}` };
      const keyId = await this.keys.keyOf(manager, holder, teamId, team.sign_in, by);
      // Last: where the person's key was revoked meanwhile, another was made in its place.
      if (!(await isOpenTo(manager, personId, known.name))) throw new NoSignIn(NOT_OPEN);
      await manager.query(APPROVE, [id, keyId]);
    });
  }

  /** The person did not start it. @throws RequestGone */
  async deny(secret: string): Promise<void> {
    const [rows] = await this.dataSource.query<[object[], number]>(DENY, [digestOf(secret)]);
    if (rows.length === 0) throw new RequestGone();
  }
}

async function findIdentified(
  manager: EntityManager,
  secret: string,
  isLocked = false,
): Promise<IdentifiedRequest> {
  const text = isLocked ? `${FIND_IDENTIFIED} FOR UPDATE OF d` : FIND_IDENTIFIED;
  const [request] = await manager.query<IdentifiedRequest[]>(text, [digestOf(secret)]);
  if (request === undefined) throw new RequestGone();
  return request;
}

/** Whether the team still lets the person in. */
async function isOpenTo(manager: EntityManager, personId: string, team: string): Promise<boolean> {
  const teams = await manager.query<object[]>(FIND_TEAMS, [[team], personId]);
  return teams.length > 0;
}

function mustNotBeEnded(person: { ended: boolean } | undefined): void {
  if (person?.ended === true)
    throw new NoSignIn('Your access was ended. Ask an administrator to open it again.');
}
