import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type DynamicModule, Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { Feature } from '../../config/features.js';
import { dataSourceOptions } from '../../database/data-source-options.js';
import { migrate } from '../../database/migrate.js';
import { CliError } from '../cli-error.js';
import { migrationText, type Statement } from './migration-text.js';
import { withScratchDatabase } from './scratch-database.js';

/** In which migrations that are written side by side get timestamps of their own. */
const DAY_MS = 86_400_000;

export interface Generation {
  /** Of the class, without the timestamp, in PascalCase. */
  name: string;
  /** Of the migrations' sources. */
  folder: string;
  /** Of the application's modules: their migrations run after the gateway's. */
  features: readonly Feature[];
  /** Where the scratch database is created; undefined: on an embedded Postgres of its own. */
  server: string | undefined;
  /** Gets one line for each slow step. */
  report: (line: string) => void;
}

export interface GeneratedMigration {
  /** Without the folder and `.ts`. */
  file: string;
  className: string;
}

/**
 * Writes a migration for what the entities of the application differ in from what its migrations make. The application must
 * have been imported. Its own database is not read: that one may be behind.
 *
 * @returns null if there is no difference
 * @throws CliError for a name that is not in PascalCase, or if the scratch database cannot be created
 */
export async function generateMigration(generation: Generation): Promise<GeneratedMigration | null> {
  const { name, folder, features, server, report } = generation;
  if (!/^[A-Z][A-Za-z0-9]*$/.test(name))
    throw new CliError(`${name} is no name of a migration; write it in PascalCase, such as AddQuotas`);
  const difference = await withScratchDatabase(server, report, async (url) => {
    report('running the migrations in a scratch database');
    await migrate(url, features);
    return differenceIn(url);
  });
  if (difference.up.length === 0) return null;
  await mkdir(folder, { recursive: true });
  const timestamp = nextTimestamp([
    ...(await readdir(folder)).map((file) => Number.parseInt(file)),
    ...features.flatMap(({ migrations = [] }) => migrations.map((one) => Number(one.name.slice(-13)))),
  ]);
  const className = `${name}${timestamp}`;
  const file = `${timestamp}-${name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '-').toLowerCase()}`;
  await writeFile(join(folder, `${file}.ts`), migrationText(className, difference), { flag: 'wx' });
  return { file, className };
}

/** After the others, also if one of them has a time to come: TypeORM runs them in this order. */
function nextTimestamp(others: number[]): number {
  const last = Math.max(0, ...others.filter((time) => time > 0));
  const now = Date.now();
  return now > last ? now : last + 1_000 + (now % DAY_MS);
}

/** What has to be run so that the tables are as the entities say. */
async function differenceIn(url: string): Promise<{ up: Statement[]; down: Statement[] }> {
  // Nest warns of a second data source. That of the application is not connected here.
  Logger.overrideLogger(false);
  const context = await NestFactory.createApplicationContext(EntitiesModule.on(url), {
    abortOnError: false,
  });
  // TypeORM runs queries side by side on one connection, of which pg warns.
  process.noDeprecation = true;
  try {
    const { upQueries, downQueries } = await context.get(DataSource).driver.createSchemaBuilder().log();
    return { up: upQueries, down: downQueries.reverse() };
  } finally {
    await context.close();
  }
}

/** The entities that the imported modules have named in `TypeOrmModule.forFeature()`, as in the gateway. */
@Module({})
class EntitiesModule {
  static on(url: string): DynamicModule {
    const options = {
      ...dataSourceOptions(url, { applicationName: 'postern-migration', poolSize: 1 }),
      autoLoadEntities: true,
      retryAttempts: 0,
    };
    return { module: EntitiesModule, imports: [TypeOrmModule.forRoot(options)] };
  }
}
