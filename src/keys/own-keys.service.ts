import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { type Access, isSingleSignOn } from '../admin/access/access.js';
import { mustChangeLess } from '../audit/recent-changes.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ServiceError } from '../errors/service-error.js';
import type { LimitMembers } from '../limit-rules/limit-rules.schema.js';
import { type SelfService, shownSelfService } from '../teams/self-service.js';
import { TeamsService } from '../teams/teams.service.js';
import type { IssuedKey, RotatedKey } from './insert-key.js';
import type { Allowance, KeyView, NewKey } from './keys.schema.js';
import { KeysService } from './keys.service.js';
import { IS_ENDED, isOwnSql, ownerValues } from './own-key.js';
import { Turns } from '../admin/access/turns.js';

const DAY_MS = 86_400_000;

/** Members of a new key that a member of a team may choose. */
const CHOICES = ['team', 'name', 'expires_at'];

/** Waits for other keys that are being created in the team, so that all of them are counted, and for changes of the team. */
const LOCK_TEAM = 'SELECT self_service FROM team WHERE id = $1 FOR UPDATE';
/** LEAST ignores null. A budget resets with each calendar month. */
const COUNT = `
  SELECT count(*)::int AS count FROM gateway_key k
  WHERE team_id = $1 AND ${isOwnSql(4)}
    AND COALESCE(LEAST(revoked_at, expires_at), 'infinity') > CASE WHEN $2 THEN date_trunc('month', now(), $3) ELSE now() END`;

/** The calendar month of a budget. */
const MONTH = `
  SELECT date_trunc('month', now(), $1) AS since,
         (date_trunc('month', now() AT TIME ZONE $1) + interval '1 month') AT TIME ZONE $1 AS until`;

/** Changes an hour of one member, who could flood the audit log otherwise. Revoking is always possible. */
const MAX_CHANGES = 20;
/** What members of a team (role `team`) do with keys of their own, within what the team allows. */
@Injectable()
export class OwnKeysService {
  /** While a change waits for a lock it holds a connection, of which administrators need some too. */
  private readonly turns = new Turns();

  constructor(
    private readonly keys: KeysService,
    private readonly teams: TeamsService,
    private readonly manager: EntityManager,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /**
   * Creates a key of a member: for inference endpoints, with the providers and the budget of the team's settings, and an end.
   *
   * @param given names of the members of the request
   * @throws ServiceError not_found for a team that is not the member's; forbidden if the team does not allow it, or for
   *   members of the request that are not the member's choice; invalid for a lifetime that is too long; conflict for too
   *   many keys or changes
   */
  async create(key: NewKey, given: readonly string[], by: Access): Promise<IssuedKey> {
    const { id: teamId, self_service: allowed } = await this.teams.resolve(key.team, by.scope);
    mustBeAllowed(allowed);
    const more = given.find((name) => !CHOICES.includes(name));
    if (more !== undefined)
      throw ServiceError.of('forbidden', more, `only ${CHOICES.join(', ')} are yours to choose`);
    const { name, expires_at: wanted } = key;
    const expiry = withSignIns(expiryOf(wanted, allowed), allowed, by);
    const create = () =>
      this.keys.create(
        {
          team: teamId,
          name,
          ...expiry,
          providers: allowed.providers,
          endpoints: 'inference',
          idempotency: 'forward',
          member: by,
          ...budgetOf(allowed),
        },
        by.actor,
        async (manager) => {
          await mustNotBeEnded(manager, by);
          await this.mustBeFewer(manager, teamId, by, allowed);
          await mustChangeLess(manager, by.actor.name, MAX_CHANGES);
        },
      );
    return this.turns.take(by.userId, create);
  }

  /**
   * What a new key of the member would have, and how many they have.
   *
   * @throws ServiceError not_found for a team that is not the member's; forbidden if the team does not allow it
   */
  async allowance(team: string, by: Access): Promise<Allowance> {
    const { id, name, self_service: allowed } = await this.teams.resolve(team, by.scope);
    mustBeAllowed(allowed);
    const { keys_per_user, max_days, budget_usd_per_month: budget, providers } = allowed;
    const { sign_in_within_days } = allowed;
    const [month] = await this.manager.query<[{ since: Date; until: Date }]>(MONTH, [
      this.env.budgetTimezone,
    ]);
    return {
      team: name,
      keys: await this.count(this.manager, id, by, allowed),
      keys_per_user,
      counted_since: budget === null ? null : month.since.toISOString(),
      max_days,
      latest_expiry: expiryOf(null, allowed).toISOString(),
      sign_in_within_days: isSingleSignOn(by) ? sign_in_within_days : null,
      budget_usd_per_month: budget,
      budget_resets_at: budget === null ? null : month.until.toISOString(),
      providers,
    };
  }

  /**
   * @throws ServiceError as KeysService.rotate(); forbidden for a key of somebody else, or if the team allows none; conflict
   *   for too many changes
   */
  async rotate(
    id: string,
    graceSeconds: number,
    by: Access,
    expected: readonly string[] | null,
  ): Promise<RotatedKey> {
    const { team_id } = await this.keys.get(id, by.scope);
    mustBeAllowed((await this.teams.resolve(team_id, by.scope)).self_service);
    const rotate = () =>
      this.keys.rotate(id, graceSeconds, by.actor, expected, by, (manager) =>
        mustChangeLess(manager, by.actor.name, MAX_CHANGES),
      );
    return this.turns.take(by.userId, rotate);
  }

  /** @throws ServiceError as KeysService.revoke(); forbidden for a key of somebody else */
  revoke(id: string, by: Access, expected: readonly string[] | null): Promise<KeyView> {
    return this.turns.take(by.userId, () => this.keys.revoke(id, by.actor, expected, by));
  }

  /** Keys of the member that count: those that work, and with a budget those that ended in this month. */
  private async count(
    manager: EntityManager,
    teamId: string,
    owner: Access,
    { budget_usd_per_month: budget }: SelfService,
  ): Promise<number> {
    // Otherwise a new key would be a new budget.
    const values = [teamId, budget !== null, this.env.budgetTimezone, ...ownerValues(owner)];
    const [{ count }] = await manager.query<[{ count: number }]>(COUNT, values);
    return count;
  }

  private async mustBeFewer(
    manager: EntityManager,
    teamId: string,
    owner: Access,
    allowed: SelfService,
  ): Promise<void> {
    const { keys_per_user: most, budget_usd_per_month: budget } = allowed;
    const [team] = await manager.query<{ self_service: SelfService | null }[]>(LOCK_TEAM, [teamId]);
    const present = team?.self_service ?? null;
    // The key would have what the team allowed before, without a rule that has been set for all keys meanwhile.
    if (present === null || !isDeepStrictEqual(shownSelfService(present), allowed))
      throw ServiceError.of(
        'conflict',
        'team',
        'what its members may create was changed meanwhile; try again',
      );
    const count = await this.count(manager, teamId, owner, allowed);
    if (count < most) return;
    throw ServiceError.of(
      'conflict',
      'team',
      `you have ${count} of ${most} keys in this team already; rotate one` +
        (budget === null ? ', or revoke one first' : ': those that ended in this month count too'),
    );
  }
}

function mustBeAllowed(allowed: SelfService | null): asserts allowed is SelfService {
  if (allowed === null)
    throw ServiceError.of('forbidden', 'team', 'this team does not let its members create or rotate keys');
}

function expiryOf(wanted: Date | null, { max_days: days }: SelfService): Date {
  const latest = new Date(Date.now() + days * DAY_MS);
  if (wanted === null) return latest;
  if (wanted > latest)
    throw ServiceError.of('invalid', 'expires_at', `must be at most ${days} days from now in this team`);
  return wanted;
}

/** Whoever asks has signed in, at most 8 hours ago. */
function withSignIns(latestExpiry: Date, { sign_in_within_days: days }: SelfService, by: Access) {
  // Absent in settings of earlier versions.
  if (days == null || !isSingleSignOn(by)) return { expiresAt: latestExpiry };
  const next = new Date(Date.now() + days * DAY_MS);
  return { expiresAt: next < latestExpiry ? next : latestExpiry, latestExpiry };
}

function budgetOf({ budget_usd_per_month: usd }: SelfService): LimitMembers {
  if (usd === null) return {};
  const rules = { mode: 'block', unpriced: 'reject', reservation: 'typical' } as const;
  return { budgets: [{ usd, period: 'month', ...rules, alert_at: [] }] };
}

/** @throws ServiceError forbidden for a person who was ended while they made the request */
async function mustNotBeEnded(manager: EntityManager, { userId }: Access): Promise<void> {
  const [person] = await manager.query<{ ended: boolean }[]>(IS_ENDED, [userId]);
  if (person?.ended === true) throw new ServiceError('forbidden', 'Your access was ended.');
}
