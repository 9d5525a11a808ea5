import { createDatabaseOn, type TestDatabase as Database } from '../../src/testing/test-database.js';
import { eventually } from './eventually.js';

declare global {
  /** Set by the test environment. */
  var testFailed: boolean | undefined;
}

export interface TestDatabase extends Database {
  /** Runs a query again until it finds a row. */
  find<T extends object>(text: string, values?: unknown[]): Promise<T>;
  /** Drops it, unless a test of this file failed: then it stays for inspection. */
  drop(): Promise<void>;
}

/** Waits until what is recorded from now on has a later `recorded_at` than every call in the log. */
export async function nextMillisecond(database: TestDatabase): Promise<void> {
  await database.find(
    `SELECT 1 WHERE date_trunc('milliseconds', clock_timestamp()) >
       COALESCE((SELECT max(recorded_at) FROM request_log WHERE recorded_at <= clock_timestamp()), '-infinity')`,
  );
}

/**
 * A migrated database of this file's own, cloned from a template of the run.
 *
 * @param options.empty not migrated
 * @param options.days false: the request log has no partitions yet, as when a gateway starts for the first time
 */
export async function createDatabase({ empty = false, days = true } = {}): Promise<TestDatabase> {
  const migrated = process.env.POSTERN_TEST_TEMPLATE!;
  const template = empty ? 'template1' : days ? `${migrated}_days` : migrated;
  const database = await createDatabaseOn(process.env.POSTERN_TEST_SERVER!, template);
  return {
    ...database,
    find: <T extends object>(text: string, values?: unknown[]) =>
      eventually(async () => (await database.query<T>(text, values))[0]),
    drop: async () => {
      if (!globalThis.testFailed) return database.drop();
      process.stdout.write(`Kept for inspection: database ${new URL(database.url).pathname.slice(1)}\n`);
    },
  };
}
