import 'reflect-metadata';
import { DataSource, getMetadataArgsStorage } from 'typeorm';
// Loads every module of the gateway with its entities, so that a new module needs no line here.
import '../app.module.js';
import { loadEnv } from '../config/env.js';
import { dataSourceOptions } from '../database/data-source-options.js';
import { explain } from './failure.js';
import { type OpenDatabase, openDatabase } from './open-database.js';

/**
 * The data source for TypeORM's command line (`npm run migration:generate|revert`): every entity and migration, on the
 * gateway's database.
 */
const database = await open();

const dataSource = new DataSource({
  ...dataSourceOptions(database.url, { applicationName: 'postern-migration', poolSize: 2 }),
  entities: getMetadataArgsStorage().tables.map(({ target }) => target),
});

// TypeORM's command line does not know the server that was started for it, so destroy() stops the server.
const destroy = dataSource.destroy.bind(dataSource);
dataSource.destroy = async () => {
  await destroy();
  await database.close();
};

export default dataSource;

/** TypeORM would report an error as "Unable to open file". */
async function open(): Promise<OpenDatabase> {
  try {
    return await openDatabase(loadEnv(), (line) => console.error(line));
  } catch (error) {
    console.error(await explain(error, null));
    process.exit(1);
  }
}
