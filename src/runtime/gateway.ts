import type { AddressInfo, Server } from 'node:net';
import { type INestApplication, Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { serveApiDocs } from '../admin/api-docs.js';
import { AppModule } from '../app.module.js';
import { CloseStack } from '../platform/close-stack.js';
import type { Env } from '../config/env.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { FirstKeyService } from '../keys/first-key.service.js';
import { type Host, openHost } from './host.js';
import { listen } from './listen.js';
import { GatewayLogger } from '../observability/gateway-logger.js';
import { ShutdownService } from '../observability/shutdown.service.js';
import { RoutesService } from '../routes/routes.service.js';
import { GatewayHttpAdapter } from '../proxy/http/gateway-http.adapter.js';

/** How long the start, and the calls that arrive during it, wait at most for the first connection to Postgres. */
const FIRST_LOOK_MS = 5_000;

export interface GatewayOptions {
  /** Gets one line for each step of the start. */
  report: (line: string) => void;
  /** Gets the first gateway key if this start created one; after the start if Postgres was unavailable at first. */
  onFirstKey: (key: string, lacksProvider: boolean) => void;
  /** Called instead if there are gateway keys or teams (not in production). */
  onKeysExist?: () => void;
  /** Called if there is no gateway key and this start must not create one (production). */
  onNoKey?: () => void;
  /** Called with the app before it listens, for settings that must hold from the first request. */
  beforeListening?: (app: INestApplication) => void;
  /** Called if the database has a permanent error after the start. */
  onPermanentError: (error: Error) => void;
}

/** A running gateway: one process of it. */
export interface Gateway {
  readonly app: INestApplication;
  readonly url: string;
  /** URL of the admin API if it has a port of its own; null if it shares `url`. */
  readonly adminUrl: string | null;
  /** Drains, writes the remaining rows and closes everything this start opened. */
  stop(): Promise<void>;
}

/**
 * Starts a gateway in this process, for `npm start`, the image and the tests.
 *
 * @throws an Error whose message names the remedy, for permanent errors; nothing is left running
 */
export async function startGateway(
  env: Env,
  options: GatewayOptions,
): Promise<Gateway & Pick<Host, 'adminTokenFile'>> {
  const host = await openHost(env, options.report);
  try {
    const gateway = await serve(host.settings, options);
    host.publish(gateway.adminUrl ?? gateway.url);
    const stop = () => {
      host.publish(null);
      return gateway.stop().finally(() => host.close());
    };
    return { ...gateway, adminTokenFile: host.adminTokenFile, stop };
  } catch (error) {
    await Promise.allSettled([host.close()]);
    throw error;
  }
}

/**
 * Serves on the port of these settings.
 *
 * @throws an Error whose message names the remedy, for permanent errors; nothing is left open
 */
export async function serve(settings: Settings, options: GatewayOptions): Promise<Gateway> {
  const opened = new CloseStack();
  const production = settings.nodeEnv === 'production';
  let started = false;
  try {
    const adapter = new GatewayHttpAdapter(settings);
    const app = await NestFactory.create(AppModule.forSettings(settings), adapter, {
      bodyParser: false,
      abortOnError: false,
      logger: new GatewayLogger(settings),
    });
    opened.add(() => app.close());
    const database = app.get(DatabaseService);
    const firstKey = app.get(FirstKeyService);
    database.whenReady(async () => {
      if (production) {
        if (await firstKey.isMissing()) options.onNoKey?.();
        return;
      }
      const made = await firstKey.create();
      if (made === null) options.onKeysExist?.();
      // Providers and routes were read by earlier hooks.
      else options.onFirstKey(made.key, app.get(RoutesService).lacksDefault);
    });
    serveApiDocs(app, production);
    // Before the database: a start that fails because its port is in use must not create a first key that nobody sees.
    await app.init();
    options.beforeListening?.(app);
    const release = adapter.hold();
    // A failed start does not wait for calls that it holds back.
    opened.add(() => app.get(ShutdownService).drain({ atOnce: !started }));
    await listen(adapter.getHttpServer(), settings, 'PORT', settings.port);
    if (adapter.adminServer !== null)
      await listen(adapter.adminServer, settings, 'ADMIN_PORT', settings.adminPort!);
    options.report('connecting to Postgres');
    // A migration may take longer. Meanwhile calls are served without the database, and the gateway can be stopped.
    await database.start(FIRST_LOOK_MS, options.onPermanentError);
    started = true;
    release();
    const url = urlOf(adapter.getHttpServer(), settings);
    const adminUrl = adapter.adminServer && urlOf(adapter.adminServer, settings);
    const logger = new Logger('Postern');
    // For programs; the start-up messages are for people.
    if (production) logger.log(`Serving on ${url}`, { url, admin_url: adminUrl, node: process.version });
    const stop = async () => {
      await opened.close();
      logger.log('Stopped.');
    };
    return { app, url, adminUrl, stop };
  } catch (error) {
    await Promise.allSettled([opened.close()]);
    throw error;
  }
}

function urlOf(server: Server, env: Settings): string {
  const { port } = server.address() as AddressInfo;
  return `http://${env.host.includes(':') ? `[${env.host}]` : env.host}:${port}`;
}
