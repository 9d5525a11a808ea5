import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { serveApiDocs } from './admin/api-docs.js';
import { AppModule } from './app.module.js';
import { openDataDir } from './config/data-dir.js';
import type { Env } from './config/env.js';
import { generatedSecrets, type Settings } from './config/settings.js';
import { DatabaseService } from './database/database.service.js';
import { startEmbeddedPostgres } from './database/embedded-postgres.js';
import { FirstKeyService } from './keys/first-key.service.js';
import { GatewayLogger } from './operations/gateway-logger.js';
import { ShutdownService } from './operations/shutdown.service.js';
import { GatewayHttpAdapter } from './proxy/gateway-http.adapter.js';

/** The address cannot be listened on; the message names the remedy. */
export class ListenFault extends Error {
  override readonly name = 'ListenFault';
}

export interface GatewayOptions {
  /** Gets one line for each step of the start that an operator wants to see. */
  report: (line: string) => void;
  /** Gets the first gateway key, once, when this start made one: late, when Postgres was away at first. */
  onFirstKey: (key: string) => void;
  /** Called when there is no gateway key and this start may not make one (production). */
  onNoKey?: () => void;
  /** Called when, after the start, the database turns out to be one that no waiting mends. */
  onUnhealable: (fault: Error) => void;
}

/** A running gateway. */
export interface Gateway {
  readonly app: INestApplication;
  readonly url: string;
  /** Where alone the admin API is; null when it shares `url`. */
  readonly adminUrl: string | null;
  /** Where the generated admin token lies; null when it was given. */
  readonly adminTokenFile: string | null;
  /** Drains, writes what is to be written and closes everything this start opened. */
  stop(): Promise<void>;
}

/**
 * Builds and starts the gateway: the same for `npm start`, the image and the tests.
 *
 * @throws an Error whose message names the remedy, when something cannot heal by itself; nothing is left running then
 */
export async function startGateway(env: Env, options: GatewayOptions): Promise<Gateway> {
  const closers: (() => Promise<void> | void)[] = [];
  const close = async () => {
    const faults: unknown[] = [];
    // One that fails must not keep the next from closing: the embedded Postgres comes last but for the lock.
    for (const closer of closers.splice(0).reverse()) {
      try {
        await closer();
      } catch (error) {
        faults.push(error);
      }
    }
    if (faults.length > 0) throw faults[0];
  };
  try {
    const dataDir = await openDataDir(env.dataDir);
    await dataDir.hold();
    closers.push(() => dataDir.release());
    const secrets = await generatedSecrets(env, dataDir);

    let { databaseUrl } = env;
    if (databaseUrl === undefined) {
      const embedded = await startEmbeddedPostgres({ dataDir: dataDir.path, report: options.report });
      closers.push(() => embedded.stop());
      databaseUrl = embedded.url;
    }

    const settings: Settings = { ...env, ...secrets, databaseUrl };
    const adapter = new GatewayHttpAdapter(settings);
    const app = await NestFactory.create(AppModule.forSettings(settings), adapter, {
      bodyParser: false,
      abortOnError: false,
      logger: new GatewayLogger(env),
    });
    closers.push(() => app.close());
    const database = app.get(DatabaseService);
    database.onUnhealable = options.onUnhealable;
    const firstKey = app.get(FirstKeyService);
    database.whenReady(async () => {
      if (env.nodeEnv === 'production') {
        if (await firstKey.isMissing()) options.onNoKey?.();
        return;
      }
      const made = await firstKey.create();
      if (made !== null) options.onFirstKey(made.key);
    });
    serveApiDocs(app, env.nodeEnv === 'production');
    // Before the database: a start that fails for a taken port must not have made a first key that nobody is shown.
    await app.init();
    await listen(adapter.getHttpServer(), env, 'PORT', env.port);
    if (adapter.adminServer !== null) await listen(adapter.adminServer, env, 'ADMIN_PORT', env.adminPort!);
    const shutdown = app.get(ShutdownService);
    closers.push(() => shutdown.drain());
    options.report('connecting to Postgres');
    await database.start();
    return {
      app,
      url: urlOf(adapter.getHttpServer(), env),
      adminUrl: adapter.adminServer && urlOf(adapter.adminServer, env),
      adminTokenFile: secrets.adminTokenFile,
      stop: close,
    };
  } catch (error) {
    await Promise.allSettled([close()]);
    throw error;
  }
}

function urlOf(server: Server, env: Env): string {
  const { port } = server.address() as AddressInfo;
  return `http://${env.host.includes(':') ? `[${env.host}]` : env.host}:${port}`;
}

/** In place of Nest's own listen(), which logs what we are about to explain. @param variable where the port comes from */
async function listen(server: Server, env: Env, variable: string, port: number): Promise<void> {
  try {
    server.listen(port, env.host);
    await once(server, 'listening');
  } catch (error) {
    throw explainedListenFault(env, variable, port, error);
  }
}

function explainedListenFault(env: Env, variable: string, port: number, error: unknown): Error {
  const { code } = error as NodeJS.ErrnoException;
  const where = `${env.host}:${port}`;
  if (code === 'EADDRINUSE')
    return new ListenFault(`${where} is taken by another process; stop it or set ${variable} to a free port`);
  if (code === 'EACCES')
    return new ListenFault(`this user may not listen on ${where}; set ${variable} to 1024 or above`);
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new ListenFault(
      `this machine has no address ${env.host}; set HOST to one of its own, or 0.0.0.0 for all`,
    );
  }
  return error as Error;
}
