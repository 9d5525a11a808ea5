import { createHmac } from 'node:crypto';
import { required, type Settings } from '../../config/settings.js';
import type { Role } from '../access/role.js';

/** A session ends after this time without a request. */
export const IDLE_HOURS = 8;

/** Condition of a session that has ended; each does so sooner or later, because one that has expired is not used. */
export const IS_IDLE = `last_seen_at <= now() - interval '${IDLE_HOURS} hours'`;

/** Whose session `s` is, as Access.userId says it. Earlier versions stored it for tokens and ADMIN_TOKEN in other columns. */
export const USER_ID = `COALESCE(s.user_id, 'token:' || s.token_id, s.actor)`;

/** Teams of the session `s` with their present names; null for roles that see all. */
const TEAMS = `
  CASE WHEN s.teams IS NOT NULL THEN COALESCE(
    (SELECT json_agg(json_build_object('id', id, 'name', name) ORDER BY name) FROM team WHERE id = ANY (s.teams)),
    '[]') END`;

/**
 * Sessions that have not ended; the session of a removed token is removed with it. $1 and $2 are SessionSettings: those that
 * an earlier version began by single sign-on, which has none of them, have ended.
 */
export const SELECT_SESSIONS = `
  SELECT s.id, s.digest, ${USER_ID} AS user_id, s.token_id, s.actor, s.role, s.teams AS scope, ${TEAMS} AS teams,
         s.created_at, s.last_seen_at, s.last_seen_at > now() - interval '1 minute' AS seen_lately, LEAST(s.expires_at, t.expires_at) AS expires_at, host(s.client_ip) AS client_ip
  FROM admin_session s LEFT JOIN admin_token t ON t.id = s.token_id
  WHERE s.expires_at > now() AND NOT s.${IS_IDLE} AND (t.expires_at IS NULL OR t.expires_at > now())
    AND CASE WHEN s.actor LIKE 'sso:%' THEN s.settings = decode($2, 'hex')
             ELSE COALESCE(s.settings, decode($1, 'hex')) = decode($1, 'hex') END
    AND NOT EXISTS (
      SELECT FROM person WHERE s.user_id LIKE 'sso:%' AND ended_at IS NOT NULL
        AND issuer = substr(split_part(s.user_id, '#', 1), 5) AND subject = substr(s.user_id, strpos(s.user_id, '#') + 1))`;

/** A row of SELECT_SESSIONS. */
export interface SessionRow {
  id: string;
  digest: Buffer;
  user_id: string;
  token_id: string | null;
  actor: string;
  role: Role;
  scope: string[] | null;
  teams: { id: string; name: string }[] | null;
  created_at: Date;
  last_seen_at: Date;
  seen_lately: boolean;
  expires_at: Date;
  client_ip: string | null;
}

/**
 * Digests in hex of the settings on which sessions depend: those begun with a token on ADMIN_TOKEN, those of single sign-on
 * also on who may sign in as what. With other settings than it began with, a session has ended, on replicas that still have
 * the old ones it has not.
 */
export interface SessionSettings {
  readonly token: string;
  readonly singleSignOn: string;
}

export function sessionSettings(env: Settings): SessionSettings {
  const { oidcIssuer, oidcClientId, oidcRoleClaim, oidcAdmins, oidcViewers } = env;
  const { oidcTeamPrefix, oidcLeadPrefix } = env;
  const signIn = [oidcIssuer, oidcClientId, oidcRoleClaim, oidcAdmins, oidcViewers, oidcTeamPrefix];
  // Not otherwise, so that the sessions of an earlier version go on.
  if (oidcLeadPrefix !== undefined) signIn.push(oidcLeadPrefix);
  const digest = (settings: unknown) =>
    createHmac('sha256', required(env, 'adminToken'))
      .update(`session settings: ${JSON.stringify(settings)}`)
      .digest('hex');
  return { token: digest(null), singleSignOn: digest(signIn) };
}
