import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DataSource, getMetadataArgsStorage } from 'typeorm';
import '../../src/app.module.js';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { createDatabase } from '../support/database.js';

/** As the command line of the migrations finds them. */
const entities = () => getMetadataArgsStorage().tables.map(({ target }) => target);

describe('the entities', () => {
  it('are all loaded with the modules of the gateway, so that migration:generate sees each of them', () => {
    const files = readdirSync(join(__dirname, '../../src'), { recursive: true, encoding: 'utf8' });
    expect(entities().length).toBeGreaterThan(5);
    expect(entities()).toHaveLength(files.filter((file) => /\.entity\.[jt]s$/.test(file)).length);
  });

  it('are what the migrations make, so that migration:generate proposes nothing', async () => {
    const database = await createDatabase();
    const options = dataSourceOptions(database.url, { applicationName: 'postern-test', poolSize: 2 });
    const dataSource = await new DataSource({ ...options, entities: entities() }).initialize();
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    await dataSource.destroy();
    await database.drop();
    expect(upQueries.map(({ query }) => query)).toEqual([]);
  });
});
