import { Injectable } from '@nestjs/common';
import { isUuid } from '../database/page.js';
import { ServiceError } from '../errors/service-error.js';
import { KeysService } from '../keys/keys.service.js';
import { TeamsService } from '../teams/teams.service.js';

/** Makes of a team's name and a key's prefix the ids by which alone the request log knows them. */
@Injectable()
export class CallFilters {
  constructor(
    private readonly teams: TeamsService,
    private readonly keys: KeysService,
  ) {}

  /** @throws ServiceError not_found for a team or prefix that nobody has, invalid for a prefix of several keys */
  async resolve<T extends { team?: string; key?: string }>(filter: T): Promise<T> {
    const { team, key } = filter;
    return {
      ...filter,
      ...(team !== undefined && { team: (await this.teams.resolve(team)).id }),
      // By id also for a key that is not there: its calls may still be.
      ...(key !== undefined && { key: isUuid(key) ? key : await this.keyOf(key) }),
    };
  }

  private async keyOf(prefix: string): Promise<string> {
    const { data } = await this.keys.list({ prefix, limit: 2 });
    if (data[0] === undefined) {
      throw ServiceError.of('not_found', 'key', 'no key begins like this; list the keys to find it');
    }
    if (data.length > 1)
      throw ServiceError.of('invalid', 'key', 'several keys begin like this; give the id of one');
    return data[0].id;
  }
}
