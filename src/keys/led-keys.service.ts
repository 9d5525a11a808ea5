import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { Access } from '../admin/access/access.js';
import { differing } from '../audit/audited.js';
import { mustChangeLess } from '../audit/recent-changes.js';
import type { Expected } from '../database/revision.js';
import { ServiceError } from '../errors/service-error.js';
import type { LimitMembers } from '../limit-rules/limit-rules.schema.js';
import { changedLimits, NO_LIMITS, sameLimits, withoutLimits } from '../limit-rules/stored-rules.js';
import { aboveTeam } from '../limit-rules/within-team.js';
import { TeamsService } from '../teams/teams.service.js';
import type { TeamView } from '../teams/teams.schema.js';
import type { IssuedKey, RotatedKey } from './insert-key.js';
import type { KeyView, NewKey } from './keys.schema.js';
import { type KeyChange, KeysService } from './keys.service.js';
import { Turns } from '../admin/access/turns.js';

/** Changes an hour of one lead, who could flood the audit log otherwise. Revoking is always possible. */
const MAX_CHANGES = 200;

/**
 * What the lead of a team (role `lead`) does with all keys of the team: everything but what reaches beyond the team. That
 * is `endpoints: all`, which shares files with other teams, unlike `own`; WebSockets, which hold connections of the process; providers
 * that an administrator has not named for the team's keys; who is charged; and responses of one person shown to another.
 */
@Injectable()
export class LedKeysService {
  /** While a change waits for a lock it holds a connection, of which administrators need some too. */
  private readonly turns = new Turns();

  constructor(
    private readonly keys: KeysService,
    private readonly teams: TeamsService,
  ) {}

  /**
   * @throws ServiceError as KeysService.create(); not_found for a team of somebody else; forbidden for what only
   *   administrators set; invalid for a limit above that of the team; conflict for too many changes
   */
  create({ expires_at: expiresAt, ...key }: NewKey, by: Access): Promise<IssuedKey> {
    return this.turns.take(by.userId, async () => {
      const team = await this.teams.resolve(key.team, by.scope);
      mustBeWithin(changedLimits(NO_LIMITS, key), team);
      mustBeAllowed(key, DEFAULTS);
      const providers = key.providers ?? team.self_service?.providers ?? null;
      mustBeProviders(providers, team);
      return this.keys.create({ ...key, team: team.id, providers, expiresAt }, by.actor, rarely(by));
    });
  }

  /** @throws ServiceError as create(), and as KeysService.update() */
  update(id: string, change: KeyChange, by: Access, expected: Expected): Promise<KeyView> {
    const check = async (manager: EntityManager, key: KeyView) => {
      const team = await this.teams.in(manager).resolve(key.team_id, by.scope);
      const limits = changedLimits(key, change);
      if (!sameLimits(limits, key)) mustBeWithin(limits, team);
      mustBeAllowed(withoutLimits(change), key);
      const { providers } = change;
      if (providers !== undefined && differing(key, { providers }).length > 0)
        mustBeProviders(providers, team);
      await mustChangeLess(manager, by.actor.name, MAX_CHANGES);
    };
    return this.turns.take(by.userId, () => this.keys.update(id, change, by.actor, expected, by, check));
  }

  /** @throws ServiceError as KeysService.rotate(); conflict for too many changes */
  rotate(id: string, graceSeconds: number, by: Access, expected: Expected): Promise<RotatedKey> {
    return this.turns.take(by.userId, () =>
      this.keys.rotate(id, graceSeconds, by.actor, expected, by, rarely(by)),
    );
  }

  /** @throws ServiceError as KeysService.revoke() */
  revoke(id: string, by: Access, expected: Expected): Promise<KeyView> {
    return this.turns.take(by.userId, () => this.keys.revoke(id, by.actor, expected, by));
  }
}

const rarely = (by: Access) => (manager: EntityManager) =>
  mustChangeLess(manager, by.actor.name, MAX_CHANGES);

type Decided = Pick<
  KeyView,
  'endpoints' | 'websockets' | 'on_disconnect' | 'cache' | 'cost_center' | 'disabled'
>;
const DEFAULTS: Decided = {
  endpoints: 'inference',
  websockets: false,
  on_disconnect: null,
  cache: null,
  cost_center: null,
  disabled: false,
};

/** @throws ServiceError forbidden for a setting that only administrators make, unless the key has it already */
function mustBeAllowed(change: Partial<Decided>, present: Decided): void {
  const { endpoints, websockets, on_disconnect, cache, cost_center, disabled } = change;
  const wanted = { endpoints, websockets, on_disconnect, cache, cost_center, disabled };
  const asked = differing<Partial<Decided>>(present, wanted);
  const isRefused: Record<keyof Decided, boolean> = {
    endpoints: endpoints === 'all',
    websockets: websockets === true,
    // Such calls take from what all teams share.
    on_disconnect: true,
    cache: cache?.shared === 'team',
    cost_center: true,
    // A stop in an emergency is an administrator's to undo.
    disabled: disabled === false,
  };
  const refused = asked.find((name) => isRefused[name]);
  if (refused !== undefined)
    throw ServiceError.of('forbidden', refused, 'only an administrator may set it so; ask one');
}

/** @throws ServiceError invalid for a limit above that of the team */
function mustBeWithin(limits: ReturnType<typeof changedLimits>, team: TeamView & LimitMembers): void {
  const above = aboveTeam(limits, team);
  if (above !== undefined)
    throw ServiceError.of('invalid', above.field, `must be at most that of the team: ${above.most}`);
}

/** @throws ServiceError forbidden for providers beyond those that an administrator has named for keys of members */
function mustBeProviders(asked: readonly string[] | null, { self_service: allowed }: TeamView): void {
  const most = allowed?.providers ?? null;
  if (most === null || asked?.every((name) => most.includes(name))) return;
  throw ServiceError.of('forbidden', 'providers', `this team's keys may use ${most.join(', ')} only`);
}
