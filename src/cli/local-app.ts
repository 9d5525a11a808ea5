import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type DynamicModule,
  type ExecutionContext,
  type INestApplication,
  Module,
  type NestInterceptor,
} from '@nestjs/common';
import { APP_INTERCEPTOR, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import type { Request } from 'express';
import { ADMIN_MODULES } from '../admin-modules.js';
import { ConfigModule } from '../config/config.module.js';
import { namedModules } from '../config/named-modules.js';
import { type Env, loadEnv } from '../config/env.js';
import { directUrl, knownMasterKey, type Settings } from '../config/settings.js';
import { checkConnections } from '../database/check-connections.js';
import { DatabaseModule } from '../database/database.module.js';
import { DatabaseService } from '../database/database.service.js';
import { migrate } from '../database/migrate.js';
import { featuresBelow } from '../runtime/declared-features.js';
import { withLoadedModules } from '../runtime/loaded-modules.js';
import { projectApp } from '../runtime/project-app.js';
import { readEnv } from '../runtime/read-env.js';
import { commandUser } from '../platform/actor.js';
import type { Target } from './api.js';
import { openDatabase } from './open-database.js';

/** Records changes under the name of the user who runs the command. */
const asCommandUser: NestInterceptor = {
  intercept: (context: ExecutionContext, next) => {
    context.switchToHttp().getRequest<Request>().actor = commandUser();
    return next.handle();
  },
};

/** The admin API without the gateway: no calls, no log writer and no other background work. */
@Module({})
class LocalAdminModule {
  static forSettings(settings: Settings): DynamicModule {
    return {
      module: LocalAdminModule,
      imports: [ConfigModule.forSettings(settings), DatabaseModule, ...ADMIN_MODULES],
      providers: [{ provide: APP_INTERCEPTOR, useValue: asCommandUser }],
    };
  }
}

interface LocalApp {
  app: INestApplication;
  token: string;
  close: () => Promise<void>;
}

/** Opens the admin API on the gateway's database, on a loopback port and with a token that nobody else knows. */
export async function openLocalApi(): Promise<Target> {
  const { app, token, close } = await openLocalApp();
  try {
    const server = app.getHttpServer() as ReturnType<typeof createServer>;
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Runs `work` with the application of the admin API on a migrated database, for what is not an endpoint. */
export async function withLocalApp<T>(work: (app: INestApplication) => Promise<T>): Promise<T> {
  const { app, close } = await openLocalApp();
  try {
    return await work(app);
  } finally {
    await close();
  }
}

/** Runs pending migrations, also with MIGRATE=off, and those of the application's modules. @returns the names of what ran */
export async function migrateNow(): Promise<string[]> {
  const app = (await projectApp()) ?? (await import('../app.module.js')).AppModule;
  const root = await withLoadedModules(app, namedModules());
  const features = await featuresBelow(root);
  const env = await readEnv(root, {});
  const { url, close } = await openInterruptible(env);
  try {
    const settings = { ...env, databaseUrl: url };
    await checkConnections(settings);
    return await migrate(directUrl(settings), features);
  } finally {
    await close();
  }
}

async function openLocalApp(): Promise<LocalApp> {
  const given = loadEnv();
  const token = randomBytes(32).toString('base64url');
  const env = { ...given, adminToken: token, masterKey: await knownMasterKey(given) };
  const database = await openInterruptible(env);
  let app: INestApplication | undefined;
  const close = async () => {
    try {
      await app?.close();
    } finally {
      await database.close();
    }
  };
  try {
    const settings = { ...env, databaseUrl: database.url, worker: 1, workers: 1 };
    app = await NestFactory.create(LocalAdminModule.forSettings(settings), new ExpressAdapter(), {
      // Errors that the API reports without their reason.
      logger: ['error'],
      bodyParser: false,
      abortOnError: false,
    });
    await app.init();
    await app.get(DatabaseService).startOnce();
    return { app, token, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opens the database. Ctrl-C then also stops a server that this command started. */
async function openInterruptible(env: Env): Promise<{ url: string; close: () => Promise<void> }> {
  // Progress goes to standard error, because standard output has the result.
  const database = await openDatabase(env, (line) => console.error(line));
  const interrupted = () => {
    database.close().then(
      () => process.exit(1),
      () => process.exit(1),
    );
  };
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  return {
    url: database.url,
    close: async () => {
      process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
      await database.close();
    },
  };
}
