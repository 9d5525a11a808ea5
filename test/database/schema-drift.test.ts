import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DataSource, getMetadataArgsStorage } from 'typeorm';
import '../../src/app.module.js';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { createDatabase } from '../support/database.js';

type Entity = abstract new () => unknown;

/** As the command line of the migrations finds them; also those of examples that another file of this worker has loaded. */
const loaded = getMetadataArgsStorage().tables.map(({ target }) => target as Entity);

/** The entities of src. */
let entities: Entity[];
beforeAll(async () => {
  const files = readdirSync(join(__dirname, '../../src'), { recursive: true, encoding: 'utf8' });
  const paths = files.filter((file) => file.endsWith('.entity.ts')).map((file) => file.replace(/ts$/, 'js'));
  const modules = await Promise.all(paths.map((path) => import(`../../src/${path}`) as Promise<object>));
  const tables = new Set<unknown>(getMetadataArgsStorage().tables.map(({ target }) => target));
  const exported: unknown[] = modules.flatMap((each) => Object.values<unknown>({ ...each }));
  entities = exported.filter((each): each is Entity => tables.has(each));
  expect(entities).toHaveLength(paths.length);
});

describe('the entities', () => {
  it('are all loaded with the modules of the gateway, so that migration:generate sees each of them', () => {
    expect(entities.length).toBeGreaterThan(5);
    expect(loaded).toEqual(expect.arrayContaining(entities));
  });

  it('are what the migrations make, so that migration:generate proposes nothing', async () => {
    const database = await createDatabase();
    const options = dataSourceOptions(database.url, { applicationName: 'postern-test', poolSize: 2 });
    const dataSource = await new DataSource({ ...options, entities }).initialize();
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    await dataSource.destroy();
    await database.drop();
    expect(upQueries.map(({ query }) => query)).toEqual([]);
  });
});
