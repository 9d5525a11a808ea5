import { DataSource } from 'typeorm';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { createDatabase, type TestDatabase } from '../support/database.js';

export interface KeysDatabase {
  database: TestDatabase;
  dataSource: DataSource;
  close(): Promise<void>;
}

/** A database of the file's own, reached as the application reaches it. */
export async function openKeysDatabase(poolSize = 10): Promise<KeysDatabase> {
  const database = await createDatabase();
  const options = dataSourceOptions(database.url, { applicationName: 'postern-test', poolSize });
  const dataSource = await new DataSource(options).initialize();
  return {
    database,
    dataSource,
    close: async () => {
      await dataSource.destroy();
      await database.drop();
    },
  };
}
