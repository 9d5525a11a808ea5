import { Injectable } from '@nestjs/common';
import type { Scope } from '../admin/access/access.js';
import { isUuid } from '../database/page.js';
import { ServiceError } from '../errors/service-error.js';
import { KeyNames } from '../keys/key-names.service.js';
import { KeysService } from '../keys/keys.service.js';
import { TeamsService } from '../teams/teams.service.js';
import type { RequestFilter } from './request-query.js';

/** What stands for teams and keys in a filter, in place of their IDs. */
interface Named {
  group?: string;
  team?: string;
  key?: string;
  owner?: string;
  cost_center?: string;
}

/** What it is resolved to. */
type Resolved = Pick<RequestFilter, 'teams' | 'group_teams' | 'noted_keys'>;

/** Resolves the names of a group and a team, owners, cost centers and the key prefix of a filter to the IDs in the request log. */
@Injectable()
export class CallFilters {
  constructor(
    private readonly teams: TeamsService,
    private readonly keys: KeysService,
    private readonly names: KeyNames,
  ) {}

  /**
   * Adds the scope, so that only its calls match.
   *
   * @throws ServiceError not_found for an unknown group, team or prefix, invalid for a prefix of several keys
   */
  async resolve<T extends Named>(
    filter: T,
    scope: Scope,
  ): Promise<Omit<T, 'group' | 'owner' | 'cost_center'> & Resolved> {
    const { group, owner, cost_center, ...others } = filter;
    const { team, key } = others;
    return {
      ...others,
      ...(group !== undefined && { group_teams: await this.teams.idsOfGroup(group, scope) }),
      ...((owner ?? cost_center) !== undefined && {
        noted_keys: await this.names.idsOf({ owner, cost_center }),
      }),
      ...(scope !== null && { teams: scope }),
      ...(team !== undefined && { team: (await this.teams.resolve(team, scope)).id }),
      // The ID of a deleted key is accepted: its calls may still be in the log.
      ...(key !== undefined && { key: isUuid(key) ? key : await this.keyOf(key, scope) }),
    };
  }

  private async keyOf(prefix: string, scope: Scope): Promise<string> {
    const { data } = await this.keys.list({ prefix, limit: 2 }, scope);
    if (data[0] === undefined) {
      throw ServiceError.of('not_found', 'key', 'no key begins like this; list the keys to find it');
    }
    if (data.length > 1)
      throw ServiceError.of('invalid', 'key', 'several keys begin like this; give the id of one');
    return data[0].id;
  }
}
