import { Injectable } from '@nestjs/common';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { DataSource, type EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { shownPrefix } from '../../keys/key-secret.js';
import type { Actor } from '../../platform/actor.js';
import { networkOf } from '../../platform/client-address.js';
import type { TokenResponse } from '../oauth/oauth-grants.js';
import { OauthError } from '../oauth/parameters.js';
import { endSignIns, RECORDED_SIGN_IN, recordEnded, type RecordedSignIn } from './end-sign-ins.js';
import { DeviceIdpSecrets, SignInIdpSecrets } from './idp-secrets.service.js';
import { ENDS_AT, GOES_ON, IN_FORCE } from './in-force.js';
import { ProviderCheck } from './provider-check.service.js';
import { digestOf, SignInSecrets, type TokenPair } from './sign-in-secrets.service.js';

/** Requests of one client address (or IPv6 network) in a second: anybody can generate well-formed secrets. */
const PER_SECOND = 50;
/** For so long a secret that was used gives the same tokens again: the response may be lost, and two terminals may share it. */
const REPEAT = `interval '60 seconds'`;
/** A client that polls a little early, because a response was fast, is not told to slow down. */
const EARLY_S = 1;
const SLOWER_S = 5;
/** Sign-ins of a person in a team at a time. The one that was renewed longest ago ends for one more. */
const MOST_SIGN_INS = 20;
/** As sessions of the console: the provider cannot be asked whether the person is still there. */
const WITHOUT_REFRESH = `interval '8 hours'`;

const FIND_REQUEST = `
  SELECT id, state, expires_at <= now() AS expired, sign_in_id, idp_refresh,
         COALESCE(last_poll_at > now() - make_interval(secs => interval_s - ${EARLY_S}), false) AS early,
         COALESCE(redeemed_at > now() - ${REPEAT}, false) AS repeatable
  FROM device_request WHERE device_digest = $1 FOR UPDATE`;

const NOTE_POLL = `
  UPDATE device_request SET last_poll_at = now(), interval_s = interval_s + $2 WHERE id = $1`;

const END_OLDEST = `
  UPDATE sign_in si SET ended_at = now(), end_reason = 'too_many', idp_refresh = NULL
  FROM person p, gateway_key k JOIN team t ON t.id = k.team_id, (SELECT id, row_number() OVER (ORDER BY last_renewed_at DESC, id DESC) AS place FROM sign_in
        WHERE key_id = (SELECT key_id FROM device_request WHERE id = $1) AND ended_at IS NULL AND expires_at > now()) live
  WHERE si.id = live.id AND live.place > ${MOST_SIGN_INS} AND p.id = si.person_id AND k.id = si.key_id
  RETURNING ${RECORDED_SIGN_IN}, COALESCE('sso:' || p.email, 'sso:sub:' || p.subject) AS actor`;

/**
 * The person, team and key are locked until the transaction ends: a change that ends them comes before it or after. In this
 * order: a change of `sign_in` of a team locks the team and then its keys. FROM names them in this order too, in which
 * Postgres locks the tables: so does `apply`. The same for ISSUE.
 */
const BEGIN = `
  WITH parents AS MATERIALIZED (
    SELECT p.id AS person_id, d.key_id, d.surface, d.client_ip, d.program, d.idp_sid,
           now() + LEAST(make_interval(days => (t.sign_in->>'days')::int),
                         CASE WHEN $3::bytea IS NULL THEN ${WITHOUT_REFRESH} END) AS expires_at
    FROM device_request d JOIN person p ON p.id = d.person_id
    CROSS JOIN team t JOIN gateway_key k ON k.id = d.key_id AND k.team_id = t.id
    WHERE d.id = $1 AND ${IN_FORCE}
    FOR NO KEY UPDATE OF p FOR SHARE OF t, k),
  begun AS (
    INSERT INTO sign_in (id, person_id, key_id, surface, client_ip, program, idp_sid, idp_refresh, expires_at)
    SELECT $2, person_id, key_id, surface, client_ip, program, idp_sid, $3, expires_at FROM parents RETURNING 1),
  seen AS (UPDATE person SET last_sign_in_at = now() WHERE id = (SELECT person_id FROM parents)),
  redeemed AS (
    UPDATE device_request
    SET state = 'redeemed', redeemed_at = now(), sign_in_id = $2, idp_refresh = NULL, approval_digest = NULL
    WHERE id = $1 AND EXISTS (SELECT FROM parents))
  SELECT FROM begun`;

const FIND_REFRESH_TOKEN = `
  SELECT sign_in_id, used_at IS NOT NULL AS used, COALESCE(used_at > now() - ${REPEAT}, true) AS usable
  FROM refresh_token WHERE digest = $1 FOR UPDATE`;

const NOTE_SPENT = `
  UPDATE sign_in SET spent_refused_at = now() WHERE id = $1 AND ended_at IS NULL AND expires_at > now()`;

const ISSUE = `
  WITH parents AS MATERIALIZED (
    SELECT si.id, si.key_id, p.email, left(COALESCE('sso:' || p.email, 'sso:sub:' || p.subject), 256) AS subject,
           LEAST(now() + make_interval(mins => (t.sign_in->>'token_minutes')::int), ${ENDS_AT}, k.expires_at) AS expires_at
    FROM sign_in si JOIN person p ON p.id = si.person_id
    CROSS JOIN team t JOIN gateway_key k ON k.id = si.key_id AND k.team_id = t.id
    WHERE si.id = $1 AND ${GOES_ON}
    FOR SHARE OF p, t, k FOR NO KEY UPDATE OF si),
  used AS (UPDATE refresh_token SET used_at = now() WHERE digest = $2 AND EXISTS (SELECT FROM parents)),
  renewed AS (UPDATE sign_in SET last_renewed_at = now(), renewing_until = NULL WHERE id = (SELECT id FROM parents)),
  next AS (INSERT INTO refresh_token (digest, sign_in_id) SELECT $3, id FROM parents),
  issued AS (
    INSERT INTO gateway_key_secret (id, key_id, digest, prefix, expires_at, kind, subject, sign_in_id)
    SELECT $4, key_id, $5, $6, expires_at, 'sign_in', subject, id FROM parents RETURNING expires_at)
  SELECT email, floor(extract(epoch FROM (SELECT expires_at FROM issued) - now()))::int AS life_s FROM parents`;

/** What was issued before, if it still works. */
const FIND_ISSUED = `
  SELECT p.email, floor(extract(epoch FROM s.expires_at - now()))::int AS life_s
  FROM sign_in si JOIN person p ON p.id = si.person_id JOIN gateway_key k ON k.id = si.key_id
  JOIN team t ON t.id = k.team_id JOIN gateway_key_secret s ON s.sign_in_id = si.id
  WHERE si.id = $1 AND s.digest = $2 AND s.expires_at > now() AND ${GOES_ON}`;

interface Issued {
  email: string | null;
  life_s: number;
}

interface RequestRow {
  id: string;
  state: 'pending' | 'approved' | 'denied' | 'redeemed';
  expired: boolean;
  early: boolean;
  repeatable: boolean;
  sign_in_id: string | null;
  idp_refresh: Buffer | null;
}

/** Issues the tokens of sign-ins. All state is in Postgres: any replica answers, and goes on where another was killed. */
@Injectable()
export class SignInTokens {
  private readonly tries = new RateLimiterMemory({ points: PER_SECOND, duration: 1 });

  constructor(
    private readonly dataSource: DataSource,
    private readonly secrets: SignInSecrets,
    private readonly ofRequests: DeviceIdpSecrets,
    private readonly ofSignIns: SignInIdpSecrets,
    private readonly provider: ProviderCheck,
  ) {}

  /**
   * What a client gets when it polls with its device code.
   *
   * @param address of the client; null if it is unknown
   * @throws OauthError of RFC 8628 3.5; errors of the database
   */
  async redeem(deviceCode: string, address: string | null): Promise<TokenResponse> {
    await this.mustBeFew(address);
    if (!this.secrets.isDeviceCode(deviceCode)) throw unknownGrant();
    return this.inTransaction(async (manager) => {
      const [request] = await manager.query<RequestRow[]>(FIND_REQUEST, [digestOf(deviceCode)]);
      if (request === undefined) return unknownGrant();
      switch (request.state) {
        case 'denied':
          return new OauthError('access_denied', 'The person has not confirmed this request.');
        case 'redeemed':
          return request.repeatable ? this.again(manager, request.sign_in_id!, deviceCode) : unknownGrant();
        case 'approved':
          return request.expired ? expired() : this.begin(manager, request, deviceCode);
        case 'pending':
          if (request.expired) return expired();
          await manager.query(NOTE_POLL, [request.id, request.early ? SLOWER_S : 0]);
          return request.early
            ? new OauthError('slow_down', 'Poll less often.')
            : new OauthError('authorization_pending', 'Nobody has confirmed this request yet.');
      }
    });
  }

  /**
   * New tokens for a refresh token. It may be used again for a minute and gives the same ones.
   *
   * @param address of the client; null if it is unknown
   * @throws OauthError invalid_grant if it was used before, or the sign-in has ended, also by what the OpenID provider says now;
   *   temporarily_unavailable if that has not answered for too long; errors of the database
   */
  async renew(refreshToken: string, address: string | null): Promise<TokenResponse> {
    await this.mustBeFew(address);
    if (!this.secrets.isRefreshToken(refreshToken)) throw unknownGrant();
    const digest = digestOf(refreshToken);
    if (!(await this.provider.confirm(digest)))
      throw new OauthError(
        'temporarily_unavailable',
        'The sign-in cannot be checked now. Try again.',
        503,
        30,
      );
    return this.inTransaction(async (manager) => {
      const [found] = await manager.query<{ sign_in_id: string; used: boolean; usable: boolean }[]>(
        FIND_REFRESH_TOKEN,
        [digest],
      );
      if (found === undefined) return unknownGrant();
      if (!found.usable) {
        // Somebody else may have it; or a second terminal, which takes over what the first has stored.
        await manager.query(NOTE_SPENT, [found.sign_in_id]);
        return new OauthError('invalid_grant', 'This refresh token was used before.');
      }
      if (found.used) return this.again(manager, found.sign_in_id, refreshToken);
      return this.issue(manager, found.sign_in_id, digest, this.secrets.following(refreshToken)[0]!);
    });
  }

  /** Ends the sign-in of a refresh token; nothing if there is none (RFC 7009 2.2). */
  async end(refreshToken: string, by: Actor): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      const [found] = await manager.query<{ sign_in_id: string }[]>(
        'SELECT sign_in_id FROM refresh_token WHERE digest = $1',
        [digestOf(refreshToken)],
      );
      if (found !== undefined) await endSignIns(manager, [{ id: found.sign_in_id }], 'signed_out', by);
    });
  }

  private async begin(
    manager: EntityManager,
    { id, idp_refresh: sealed }: RequestRow,
    deviceCode: string,
  ): Promise<TokenResponse | OauthError> {
    const signInId = uuidv7();
    // Bound to its row, so it is encrypted again for the other table.
    const refresh = sealed === null ? null : this.ofSignIns.seal(signInId, this.ofRequests.open(id, sealed));
    const begun = await manager.query<object[]>(BEGIN, [id, signInId, refresh]);
    if (begun.length === 0) return over();
    const [ended] = await manager.query<[(RecordedSignIn & { actor: string })[], number]>(END_OLDEST, [id]);
    for (const { actor, ...signIn } of ended)
      await recordEnded(manager, [signIn], { name: actor, address: null });
    return this.issue(manager, signInId, null, this.secrets.following(deviceCode)[0]!);
  }

  /** @param used digest of the refresh token that is used up; null for a device code */
  private async issue(
    manager: EntityManager,
    signInId: string,
    used: Buffer | null,
    pair: TokenPair,
  ): Promise<TokenResponse | OauthError> {
    const [issued] = await manager.query<Issued[]>(ISSUE, [
      ...[signInId, used, digestOf(pair.refresh)],
      ...[uuidv7(), digestOf(pair.access), shownPrefix(pair.access)],
    ]);
    return issued === undefined ? over() : responseOf(pair, issued);
  }

  /** The tokens that a secret has given before. */
  private async again(
    manager: EntityManager,
    signInId: string,
    secret: string,
  ): Promise<TokenResponse | OauthError> {
    for (const pair of this.secrets.following(secret)) {
      const [issued] = await manager.query<Issued[]>(FIND_ISSUED, [signInId, digestOf(pair.access)]);
      if (issued !== undefined) return responseOf(pair, issued);
    }
    return over();
  }

  private async mustBeFew(address: string | null): Promise<void> {
    await this.tries.consume(networkOf(address ?? 'unknown')).catch(() => {
      throw new OauthError('temporarily_unavailable', 'Too many requests. Try again.', 429, 1);
    });
  }

  /** What the work returns is committed, also an error. */
  private async inTransaction(
    work: (manager: EntityManager) => Promise<TokenResponse | OauthError> | TokenResponse | OauthError,
  ): Promise<TokenResponse> {
    const result = await this.dataSource.transaction(async (manager) => work(manager));
    if (result instanceof OauthError) throw result;
    return result;
  }
}

function responseOf({ access, refresh }: TokenPair, { email, life_s }: Issued): TokenResponse {
  return {
    access_token: access,
    token_type: 'Bearer',
    expires_in: life_s,
    refresh_token: refresh,
    ...(email !== null && { email }),
  };
}

function unknownGrant(): OauthError {
  return new OauthError('invalid_grant', 'This code or token is not known here, or was used before.');
}

function over(): OauthError {
  return new OauthError('invalid_grant', 'The sign-in has ended. Sign in again.');
}

function expired(): OauthError {
  return new OauthError('expired_token', 'The request was not confirmed in time. Start again.');
}
