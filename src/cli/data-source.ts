import 'reflect-metadata';
import { DataSource, getMetadataArgsStorage } from 'typeorm';
// Loads every module of the gateway, and with them their entities: a new one needs no line here.
import '../app.module.js';
import { loadEnv } from '../config/env.js';
import { dataSourceOptions } from '../database/data-source-options.js';
import { openDatabase } from './open-database.js';

/**
 * What `npm run migration:generate|run|revert` gives to TypeORM's own command line: every entity and migration, on the
 * database that the gateway uses.
 */
const database = await openDatabase(loadEnv(), (line) => console.error(line));

const dataSource = new DataSource({
  ...dataSourceOptions(database.url, { applicationName: 'postern-migration', poolSize: 2 }),
  entities: getMetadataArgsStorage().tables.map(({ target }) => target),
});

// TypeORM's command line knows nothing of a server that was started for it: it is stopped with the last connection.
const destroy = dataSource.destroy.bind(dataSource);
dataSource.destroy = async () => {
  await destroy();
  await database.close();
};

export default dataSource;
