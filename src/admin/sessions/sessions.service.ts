import { Injectable } from '@nestjs/common';
import { createHmac, randomBytes } from 'node:crypto';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../../config/config.module.js';
import { required, type Settings } from '../../config/settings.js';
import type { Access } from '../access/access.js';
import { CredentialLookups } from '../access/credential-lookups.js';
import type { Role } from '../access/role.js';

/** A session ends after this time without a request. */
const IDLE_HOURS = 8;
/** A session ends after this time in any case. */
export const LONGEST_HOURS = 7 * 24;

/** A session that has not ended. */
export interface Session {
  readonly access: Access;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** Teams of the role `team`, with their present names; null for the other roles. */
  readonly teams: { id: string; name: string }[] | null;
}

interface SessionRow {
  token_id: string | null;
  actor: string;
  role: Role;
  scope: string[] | null;
  teams: { id: string; name: string }[] | null;
  created_at: Date;
  expires_at: Date;
  seen_lately: boolean;
}

const INSERT = `
  INSERT INTO admin_session (digest, token_id, actor, role, teams, client_ip, expires_at)
  VALUES (decode($1, 'hex'), $2, $3, $4, $5, $6, now() + make_interval(hours => $7))`;

/** The session of a removed token is removed with it. */
const FIND = `
  SELECT s.token_id, s.actor, s.role, s.teams AS scope, s.created_at, LEAST(s.expires_at, t.expires_at) AS expires_at,
         s.last_seen_at > now() - interval '1 minute' AS seen_lately,
         CASE WHEN s.teams IS NOT NULL THEN COALESCE(
           (SELECT json_agg(json_build_object('id', id, 'name', name) ORDER BY name) FROM team WHERE id = ANY (s.teams)),
           '[]') END AS teams
  FROM admin_session s LEFT JOIN admin_token t ON t.id = s.token_id
  WHERE s.digest = decode($1, 'hex') AND s.expires_at > now()
    AND s.last_seen_at > now() - interval '${IDLE_HOURS} hours'
    AND (t.expires_at IS NULL OR t.expires_at > now())`;

const SEEN = `UPDATE admin_session SET last_seen_at = now() WHERE digest = decode($1, 'hex')`;
const REMOVE = `DELETE FROM admin_session WHERE digest = decode($1, 'hex')`;
const REMOVE_ENDED = `
  DELETE FROM admin_session WHERE expires_at <= now() OR last_seen_at <= now() - interval '${IDLE_HOURS} hours'`;

/**
 * Sessions of the console. Each request reads its session from Postgres, so that one which ends is over on every replica
 * at once. Digests are keyed with ADMIN_TOKEN: a new ADMIN_TOKEN ends every session.
 */
@Injectable()
export class SessionsService {
  private readonly digestKey: string;

  constructor(
    @InjectSettings() env: Settings,
    private readonly dataSource: DataSource,
    private readonly lookups: CredentialLookups,
  ) {
    this.digestKey = required(env, 'adminToken');
  }

  /** Begins a session. @returns the value of its cookie, which is not stored */
  async begin(access: Access, hours = LONGEST_HOURS): Promise<string> {
    const secret = randomBytes(32).toString('base64url');
    const { actor, role, scope, tokenId } = access;
    await this.dataSource.query(REMOVE_ENDED);
    const values = [this.digest(secret), tokenId, actor.name, role, scope, actor.address, hours];
    await this.dataSource.query(INSERT, values);
    return secret;
  }

  /**
   * @param secret value of the cookie
   * @param address of the client now, for its Actor
   * @returns null if it has ended
   * @throws TooManyUnknown
   */
  async find(secret: string, address: string | null): Promise<Session | null> {
    const digest = this.digest(secret);
    const read = () => this.dataSource.query<SessionRow[]>(FIND, [digest]).then(([row]) => row);
    const row = await this.lookups.find(digest, address, read);
    if (row === undefined) return null;
    if (!row.seen_lately) await this.dataSource.query(SEEN, [digest]);
    return {
      access: {
        actor: { name: row.actor, address },
        role: row.role,
        scope: row.scope,
        tokenId: row.token_id,
      },
      createdAt: row.created_at,
      expiresAt: row.expires_at,
      teams: row.teams,
    };
  }

  async end(secret: string): Promise<void> {
    await this.dataSource.query(REMOVE, [this.digest(secret)]);
  }

  private digest(secret: string): string {
    return createHmac('sha256', this.digestKey).update(secret).digest('hex');
  }
}
