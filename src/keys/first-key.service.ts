import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { STARTING } from '../platform/actor.js';
import { ADVISORY_LOCKS } from '../database/advisory-locks.js';
import { isUniqueViolation } from '../database/sql-state.js';
import { insertTeam } from '../teams/team-rows.js';
import { insertKey } from './insert-key.js';

const IS_EMPTY = 'SELECT NOT EXISTS (SELECT FROM team) AND NOT EXISTS (SELECT FROM gateway_key) AS empty';

/** Creates the first team and key in an empty database. */
@Injectable()
export class FirstKeyService {
  constructor(private readonly dataSource: DataSource) {}

  /** True if there is no team and no key. */
  async isMissing(): Promise<boolean> {
    const [{ empty }] = await this.dataSource.query<[{ empty: boolean }]>(IS_EMPTY);
    return empty;
  }

  /** @returns the new key, which is not readable later; null if there is a team or a key */
  async create(): Promise<{ key: string } | null> {
    try {
      return await this.dataSource.transaction(async (manager) => {
        // If several replicas start at once, only one of them creates it.
        await manager.query('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.firstKey]);
        const [{ empty }] = await manager.query<[{ empty: boolean }]>(IS_EMPTY);
        if (!empty) return null;
        const team = await insertTeam(manager, { name: 'default' }, STARTING);
        const grant = {
          name: 'first',
          expiresAt: null,
          providers: null,
          endpoints: 'inference',
          idempotency: 'forward',
        } as const;
        const { secret } = await insertKey(manager, team.id, grant, STARTING);
        return { key: secret! };
      });
    } catch (error) {
      // The team was created concurrently, so this is not a first start.
      if (isUniqueViolation(error, 'team_name_key')) return null;
      throw error;
    }
  }
}
