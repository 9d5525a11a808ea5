import { HttpException, Injectable } from '@nestjs/common';
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Response } from 'express';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../../config/config.module.js';
import { required, type Settings } from '../../config/settings.js';
import { KnownEnds } from '../../database/known-ends/known-ends.js';
import { type Access, isSingleSignOn } from '../access/access.js';
import { CredentialLookups } from '../access/credential-lookups.js';
import { type RecordedSession, SessionRecorder } from './session-recorder.js';
import {
  IS_IDLE,
  SELECT_SESSIONS,
  type SessionRow,
  type SessionSettings,
  sessionSettings,
} from './session-rows.js';

/** A session ends after this time in any case. */
export const MAX_HOURS = 7 * 24;

/** Sessions that a user may have at a time. The oldest ends when there is one more. */
export const MAX_SESSIONS = 20;
/** Sign-ins of a user in this time, in one process: each leaves an entry in the audit log. */
const SIGN_INS = { points: 20, duration: 600 };

/** A session that has not ended. */
export interface Session {
  readonly access: Access;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** Teams of the role `team`, with their present names; null for the other roles. */
  readonly teams: { id: string; name: string }[] | null;
}

/** Bytes of each half of a cookie's value. */
const HALF = 16;

const INSERT = `
  INSERT INTO admin_session (digest, user_id, settings, token_id, actor, role, teams, client_ip, expires_at, idp_sid)
  VALUES (decode($1, 'hex'), $2, decode($3, 'hex'), $4, $5, $6, $7, $8, now() + make_interval(hours => $9), $10)
  RETURNING id, actor AS name, role, expires_at`;

const FIND = `${SELECT_SESSIONS} AND s.digest = decode($3, 'hex')`;
const SEEN = `UPDATE admin_session SET last_seen_at = now() WHERE digest = decode($1, 'hex')`;
const REMOVE = `
  DELETE FROM admin_session WHERE digest = decode($1, 'hex') RETURNING id, actor AS name, role, expires_at`;
/** All that end several lock them in one order: several requests may do so at a time. */
const REMOVE_IDLE = `
  DELETE FROM admin_session WHERE id IN (SELECT id FROM admin_session WHERE ${IS_IDLE} ORDER BY id FOR UPDATE)`;
const REMOVE_OLDEST = `
  DELETE FROM admin_session WHERE id IN (
    SELECT id FROM admin_session WHERE id IN (
      SELECT id FROM admin_session WHERE user_id = $1 ORDER BY created_at DESC, id DESC OFFSET ${MAX_SESSIONS})
    ORDER BY id FOR UPDATE)
  RETURNING id, actor AS name, role, expires_at`;

/**
 * Sessions of the console. Each request reads its session from Postgres, so that one which ends is over on every replica
 * at once. Digests are keyed with ADMIN_TOKEN: a new ADMIN_TOKEN ends every session. Other settings for single sign-on end
 * those that it began, see SessionSettings.
 */
@Injectable()
export class SessionsService {
  /** Since the start, for the metrics. */
  readonly counts = { token: { ok: 0, failed: 0 }, singleSignOn: { ok: 0, failed: 0 } };
  readonly settings: SessionSettings;
  private readonly digestKey: string;
  private readonly signIns = new RateLimiterMemory(SIGN_INS);

  constructor(
    @InjectSettings() env: Settings,
    private readonly dataSource: DataSource,
    private readonly lookups: CredentialLookups,
    private readonly recorder: SessionRecorder,
    private readonly ends: KnownEnds,
  ) {
    this.digestKey = required(env, 'adminToken');
    this.settings = sessionSettings(env);
  }

  /**
   * Begins a session and ends the oldest of a user who has too many.
   *
   * @param idpSid session at the OpenID provider
   * @returns the value of its cookie, which is not stored
   * @throws HttpException 429 for a user who signs in too often, with Retry-After. Never for ADMIN_TOKEN
   */
  async begin(
    access: Access,
    res: Response,
    hours = MAX_HOURS,
    idpSid: string | null = null,
  ): Promise<string> {
    const { actor, role, scope, userId, tokenId } = access;
    if (tokenId !== null || isSingleSignOn(access)) await this.mustBeRare(userId, res);
    const secret = this.makeSecret();
    const settings = isSingleSignOn(access) ? this.settings.singleSignOn : this.settings.token;
    const values = [
      this.digest(secret),
      userId,
      settings,
      tokenId,
      actor.name,
      role,
      scope,
      actor.address,
      hours,
      idpSid,
    ];
    await this.dataSource.transaction(async (manager) => {
      await manager.query(REMOVE_IDLE);
      const [row] = await manager.query<[RecordedSession]>(INSERT, values);
      await this.recorder.record(manager, actor, 'signed_in', row);
    });
    // After the commit, so that the last of several sign-ins at the same time sees them all.
    await this.dataSource.transaction(async (manager) => {
      const [removed] = await manager.query<[RecordedSession[], number]>(REMOVE_OLDEST, [userId]);
      for (const session of removed) await this.recorder.record(manager, actor, 'ended', session);
    });
    this.counts[isSingleSignOn(access) ? 'singleSignOn' : 'token'].ok++;
    return secret;
  }

  /**
   * @param secret value of the cookie
   * @param address of the client now, for its Actor
   * @returns null if it has ended
   * @throws TooManyUnknown
   */
  async find(secret: string, address: string | null): Promise<Session | null> {
    const { token, singleSignOn } = this.settings;
    const digest = this.digest(secret);
    const values = [token, singleSignOn, digest];
    const read = async () => {
      const [row] = await this.dataSource.query<SessionRow[]>(FIND, values);
      if (row === undefined || this.ends.hasEnded(row.id)) return undefined;
      return row.token_id !== null && this.ends.hasEnded(row.token_id) ? undefined : row;
    };
    const row = await this.lookups.find(digest, address, read, this.isOurs(secret));
    if (row === undefined) return null;
    if (!row.seen_lately) await this.dataSource.query(SEEN, [digest]);
    return {
      access: {
        actor: { name: row.actor, address },
        role: row.role,
        scope: row.scope,
        userId: row.user_id,
        tokenId: row.token_id,
        sessionId: row.id,
      },
      createdAt: row.created_at,
      expiresAt: row.expires_at,
      teams: row.teams,
    };
  }

  /** Ends the session of a browser that signs out. @param secret value of the cookie @param address of the client */
  async end(secret: string, address: string | null): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      const [[removed]] = await manager.query<[RecordedSession[], number]>(REMOVE, [this.digest(secret)]);
      if (removed === undefined) return;
      await this.recorder.record(manager, { name: removed.name, address }, 'signed_out', removed);
    });
  }

  private async mustBeRare(userId: string, res: Response): Promise<void> {
    try {
      await this.signIns.consume(userId);
    } catch (rejected) {
      const seconds = Math.ceil((rejected as RateLimiterRes).msBeforeNext / 1_000);
      res.set('retry-after', String(seconds));
      throw new HttpException(`You have signed in too often. Try again in ${seconds} seconds.`, 429);
    }
  }

  /** 128 random bits, and as many that show that the gateway made them. */
  private makeSecret(): string {
    const random = randomBytes(HALF);
    return Buffer.concat([random, this.sign(random)]).toString('base64url');
  }

  /** Whether it was made here, on any replica. Says nothing about the session, which may have ended. */
  private isOurs(secret: string): boolean {
    const bytes = Buffer.from(secret, 'base64url');
    const given = bytes.subarray(HALF);
    return given.length === HALF && timingSafeEqual(given, this.sign(bytes.subarray(0, HALF)));
  }

  private sign(random: Buffer): Buffer {
    return createHmac('sha256', this.digestKey)
      .update('session cookie: ')
      .update(random)
      .digest()
      .subarray(0, HALF);
  }

  private digest(secret: string): string {
    return createHmac('sha256', this.digestKey).update(secret).digest('hex');
  }
}
