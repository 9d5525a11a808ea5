import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TeamChanges } from '../teams/team-changes.js';
import { isOwnSql } from './own-key.js';

/**
 * An administrator who removes the expiry of such a key lets it work without a sign-in. Keys that the rule changes nothing of
 * keep their version.
 */
const APPLY = `
  WITH locked AS MATERIALIZED (
    SELECT id FROM gateway_key
    WHERE team_id = $1 AND owner IS NOT NULL AND COALESCE(owner_id, owner) LIKE 'sso:%' AND revoked_at IS NULL
      AND expires_at IS NOT NULL AND (latest_expiry IS NULL OR expires_at > now() + make_interval(days => $2))
    ORDER BY id FOR NO KEY UPDATE)
  UPDATE gateway_key
  SET latest_expiry = COALESCE(latest_expiry, expires_at), version = version + 1,
      expires_at = LEAST(expires_at, now() + make_interval(days => $2))
  WHERE id IN (SELECT id FROM locked)`;

/**
 * LEAST ignores null: where the team asks for no sign-in any more, keys work until their end again. The teams are locked, so
 * that a shorter time that is being set holds for these keys too; then the keys, in the order in which their last use is written.
 */
const EXTEND = `
  WITH own AS MATERIALIZED (
    SELECT k.id, k.team_id FROM gateway_key k
    WHERE k.latest_expiry IS NOT NULL AND k.revoked_at IS NULL AND ${isOwnSql(1)}),
  teams AS MATERIALIZED (
    SELECT id, (self_service->>'sign_in_within_days')::int AS days FROM team
    WHERE id IN (SELECT team_id FROM own) AND name = ANY ($3) ORDER BY id FOR SHARE),
  locked AS MATERIALIZED (
    SELECT id FROM gateway_key
    WHERE id IN (SELECT own.id FROM own JOIN teams ON teams.id = own.team_id) AND latest_expiry IS NOT NULL
    ORDER BY id FOR NO KEY UPDATE)
  UPDATE gateway_key k SET expires_at = LEAST(k.latest_expiry, now() + make_interval(days => t.days))
  FROM teams t WHERE k.team_id = t.id AND k.id IN (SELECT id FROM locked)`;

/** Own keys that work only while their owner signs in from time to time: `sign_in_within_days` of the team. */
@Injectable()
export class RecentSignIns {
  constructor(changes: TeamChanges) {
    changes.onSelfService(async (manager, teamId, { sign_in_within_days: days }) => {
      if (days !== null) await manager.query(APPLY, [teamId, days]);
    });
  }

  /**
   * Extends the own keys of a person who has signed in. Those in a team that they have left end.
   *
   * @param owner as ownerValues() names them
   * @param teams names of those that they lead or are a member of now
   */
  async extend(
    manager: EntityManager,
    owner: readonly [string, string],
    teams: readonly string[],
  ): Promise<void> {
    await manager.query(EXTEND, [...owner, teams]);
  }
}
