import { DataSource } from 'typeorm';
import type { Actor } from '../../src/platform/actor.js';
import type { Grant } from '../../src/auth/caller.js';
import { FIND_GRANTS, type GrantRow, grantsOf } from '../../src/auth/find-grants.js';
import { digestKey } from '../../src/keys/key-secret.js';
import type { Settings } from '../../src/config/settings.js';
import type { DatabaseService } from '../../src/database/database.service.js';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { KnownEnds } from '../../src/database/known-ends/known-ends.js';
import { TeamGroup } from '../../src/groups/group.entity.js';
import { Person } from '../../src/identity/people/person.entity.js';
import { SignIn } from '../../src/identity/sign-in/sign-in.entity.js';
import { Trust } from '../../src/identity/trusts/trust.entity.js';
import { GatewayKey } from '../../src/keys/gateway-key.entity.js';
import { GatewayKeySecret } from '../../src/keys/gateway-key-secret.entity.js';
import { KeysService } from '../../src/keys/keys.service.js';
import { LimitRules } from '../../src/limit-rules/limit-rules.service.js';
import { Team } from '../../src/teams/team.entity.js';
import { TeamChanges } from '../../src/teams/team-changes.js';
import { TeamsService } from '../../src/teams/teams.service.js';
import { createDatabase, type TestDatabase } from '../support/database.js';

/** Who makes the changes of these tests. */
export const TESTER: Actor = { name: 'test', address: null };

export interface KeysDatabase {
  database: TestDatabase;
  dataSource: DataSource;
  close(): Promise<void>;
}

/** A database of the file's own, reached as the application reaches it. */
export async function openKeysDatabase(poolSize = 10): Promise<KeysDatabase> {
  const database = await createDatabase();
  const options = dataSourceOptions(database.url, { applicationName: 'postern-test', poolSize });
  const dataSource = await new DataSource({
    ...options,
    entities: [TeamGroup, Team, Person, GatewayKey, SignIn, GatewayKeySecret, Trust],
  }).initialize();
  return {
    database,
    dataSource,
    close: async () => {
      await dataSource.destroy();
      await database.drop();
    },
  };
}

function limitRules(dataSource: DataSource): LimitRules {
  const env = { budgetTimezone: 'UTC' } as Settings;
  return new LimitRules(dataSource, env, { whenReady: () => {} } as unknown as DatabaseService);
}

export function teamsService(dataSource: DataSource): TeamsService {
  return new TeamsService(dataSource.getRepository(Team), limitRules(dataSource), new TeamChanges());
}

export function keysService(dataSource: DataSource): KeysService {
  return new KeysService(dataSource.manager, teamsService(dataSource), limitRules(dataSource));
}

/** What Postgres says of a key. */
export async function findGrant(dataSource: DataSource, key: string): Promise<Grant | undefined> {
  const digest = digestKey(key);
  const rows = await dataSource.query<GrantRow[]>(FIND_GRANTS, [[Buffer.from(digest, 'hex')]]);
  return grantsOf(rows, new KnownEnds()).get(digest);
}
