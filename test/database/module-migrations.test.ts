import type { MigrationInterface, QueryRunner } from 'typeorm';
import type { Feature } from '../../src/config/features.js';
import { featureModule } from '../../src/config/features.js';
import { isMigrationPending, migrate } from '../../src/database/migrate.js';
import { PosternModule } from '../../src/postern.module.js';
import { Module } from '@nestjs/common';
import { PosternFactory } from '../../src/runtime/postern-factory.js';
import { addToApp } from '../support/app-modules.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startTestGateway } from '../support/gateway.js';

let database: TestDatabase;
beforeEach(async () => {
  database = await createDatabase({ empty: true });
});
afterEach(() => database.drop());

/** References a table of the gateway, which its own migrations create. */
class AddQuota1600000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE TABLE quota (team_id uuid PRIMARY KEY REFERENCES team (id))');
  }
  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE quota');
  }
}

class AddTokens1600000001000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE quota ADD COLUMN tokens int');
  }
  async down(): Promise<void> {}
}

class Broken1600000002000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE TABLE leftover (); CREATE TABLE nonsense (a missing_type)');
  }
  async down(): Promise<void> {}
}

const quotas: Feature = { name: 'quotas', migrations: [AddQuota1600000000000] };

const recorded = async () =>
  (await database.query<{ name: string }>('SELECT name FROM migration_quotas ORDER BY id')).map(
    ({ name }) => name,
  );

const hasTable = async (name: string) => {
  const [found] = await database.query<{ is: boolean }>('SELECT to_regclass($1) IS NOT NULL AS is', [name]);
  return found!.is;
};

describe('migrations of modules', () => {
  it("run after the gateway's own, once, and are recorded in a table of the module", async () => {
    expect(await isMigrationPending(database.url, [quotas])).toBe(true);
    expect((await migrate(database.url, [quotas])).at(-1)).toBe('quotas/AddQuota1600000000000');
    expect(await recorded()).toEqual(['AddQuota1600000000000']);
    expect(await database.query("SELECT FROM migrations WHERE name LIKE 'AddQuota%'")).toEqual([]);
    expect(await isMigrationPending(database.url, [quotas])).toBe(false);
    expect(await migrate(database.url, [quotas])).toEqual([]);
  });

  it('run once for replicas that start together', async () => {
    const ran = await Promise.all([1, 2, 3].map(() => migrate(database.url, [quotas])));
    expect(ran.flat().filter((name) => name.startsWith('quotas/'))).toHaveLength(1);
  });

  it('that are new are pending, and a module that is gone leaves its tables alone', async () => {
    await migrate(database.url, [quotas]);
    const newer = { name: 'quotas', migrations: [AddQuota1600000000000, AddTokens1600000001000] };
    expect(await isMigrationPending(database.url, [newer])).toBe(true);
    expect(await migrate(database.url, [newer])).toEqual(['quotas/AddTokens1600000001000']);
    // An older version of the module, and none.
    for (const features of [[quotas], []]) {
      expect(await isMigrationPending(database.url, features)).toBe(false);
      expect(await migrate(database.url, features)).toEqual([]);
    }
    expect(await recorded()).toHaveLength(2);
  });

  it('that Postgres rejects leave nothing, are named, and run again', async () => {
    const broken = { name: 'broken', migrations: [Broken1600000002000] };
    const expected = 'migrations of the module broken: type "missing_type" does not exist';
    await expect(migrate(database.url, [quotas, broken])).rejects.toThrow(expected);
    expect([await hasTable('quota'), await hasTable('leftover')]).toEqual([true, false]);
    await expect(migrate(database.url, [quotas, broken])).rejects.toThrow(expected);
  });

  it('run when a gateway starts whose tree of modules declares them, and not otherwise', async () => {
    @Module({ imports: [PosternModule.forFeature(quotas)] })
    class QuotasModule {}
    addToApp(QuotasModule);
    const gateway = await startTestGateway({}, database);
    await gateway.stop();
    expect(await recorded()).toEqual(['AddQuota1600000000000']);
  });
});

it('rejects names that cannot be those of tables, and one that two modules have', async () => {
  for (const name of ['', 'Quotas', '1st', 'a-b', 'a"; --', 'a'.repeat(51)])
    expect(() => featureModule({ name })).toThrow('is not a valid name of a feature');
  @Module({
    imports: [PosternModule.forRoot(), featureModule({ name: 'one' }), featureModule({ name: 'one' })],
  })
  class Twice {}
  await expect(PosternFactory.create(Twice)).rejects.toThrow('two modules declare the feature one');
});
