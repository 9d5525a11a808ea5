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

/** Progress goes to standard error, because standard output has the result. */
const report = (line: string) => console.error(line);

/**
 * Runs `work` with the gateway's services on a connected and migrated database, then closes everything.
 *
 * @param seals true for work that encrypts or decrypts secrets: it gets the gateway's master key
 * @param providers services that the command needs in addition to those of CliModule
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
      // First, because a server without connections counts as unused and may be stopped.
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

/** Runs pending migrations, also with MIGRATE=off. @returns the names of the migrations that ran */
export async function migrateNow(): Promise<string[]> {
  return withDatabase(loadEnv(), migrate);
}

async function withDatabase<T>(env: Env, work: (url: string) => Promise<T>): Promise<T> {
  const database = await openDatabase(env, report);
  // Ctrl-C must also stop a server that this command started.
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
