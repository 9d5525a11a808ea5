import type { INestApplicationContext, ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { cliCommand } from '../platform/cli-command.js';
import { type Env, loadEnv } from '../config/env.js';
import { knownMasterKey } from '../config/settings.js';
import { PermanentDatabaseError } from '../database/permanent-database-error.js';
import { isMigrationPending, migrate } from '../database/migrate.js';
import { CliModule } from './cli.module.js';
import { openDatabase } from './open-database.js';

/** Steps are told on standard error: standard output belongs to the answer. */
const report = (line: string) => console.error(line);

/**
 * Runs a command's work on the gateway's own services, connected and migrated, and closes everything again.
 *
 * @param seals true for work that seals or opens secrets: it gets the gateway's master key
 * @param providers services of a module of one's own that the command needs besides those of CliModule
 */
export async function withServices<T>(
  work: (app: INestApplicationContext) => Promise<T>,
  { seals = false, providers = [] }: { seals?: boolean; providers?: ModuleMetadata['providers'] } = {},
): Promise<T> {
  const given = loadEnv();
  const env = seals ? { ...given, masterKey: await knownMasterKey(given) } : given;
  return withDatabase(env, async (databaseUrl) => {
    const settings = { ...env, databaseUrl, worker: 1, workers: 1 };
    const app = await NestFactory.createApplicationContext(CliModule.forSettings(settings, providers), {
      logger: false,
      abortOnError: false,
    });
    try {
      // First of all, so that from now on there is a connection and nobody takes the server for unused.
      await app.get(DataSource).initialize();
      if (env.migrate) await migrate(databaseUrl);
      else if (await isMigrationPending(databaseUrl)) {
        throw new PermanentDatabaseError(
          `migrations are pending and MIGRATE=off; run "${cliCommand('migrate')}" first`,
        );
      }
      return await work(app);
    } finally {
      await app.close();
    }
  });
}

/** Brings the schema up to date, also with MIGRATE=off. @returns the names of the migrations that ran */
export async function migrateNow(): Promise<string[]> {
  return withDatabase(loadEnv(), migrate);
}

async function withDatabase<T>(env: Env, work: (url: string) => Promise<T>): Promise<T> {
  const database = await openDatabase(env, report);
  // Ctrl-C must not leave a server running that this command started.
  const interrupted = () => {
    database.close().then(
      () => process.exit(1),
      () => process.exit(1),
    );
  };
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  try {
    return await work(database.url);
  } finally {
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
    await database.close();
  }
}
