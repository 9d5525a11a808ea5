import type { AddressInfo, Server } from 'node:net';
import { type INestApplication, Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { serveApiDocs } from './admin/api-docs.js';
import { AppModule } from './app.module.js';
import { CloseStack } from './platform/close-stack.js';
import type { Env } from './config/env.js';
import type { Settings } from './config/settings.js';
import { DatabaseService } from './database/database.service.js';
import { FirstKeyService } from './keys/first-key.service.js';
import { type Host, openHost } from './host.js';
import { listen } from './listen.js';
import { GatewayLogger } from './observability/gateway-logger.js';
import { ShutdownService } from './observability/shutdown.service.js';
import { GatewayHttpAdapter } from './proxy/http/gateway-http.adapter.js';

/** The start, and the calls that come before it is over, wait for the first look at Postgres, for so long at most. */
const FIRST_LOOK_MS = 5_000;

export interface GatewayOptions {
  /** Gets one line for each step of the start that an operator wants to see. */
  report: (line: string) => void;
  /** Gets the first gateway key, once, when this start made one: late, when Postgres was away at first. */
  onFirstKey: (key: string) => void;
  /** Called when there is no gateway key and this start may not make one (production). */
  onNoKey?: () => void;
  /** Called with the app when it is about to listen: what others see of it from the first request on is set here. */
  beforeListening?: (app: INestApplication) => void;
  /** Called when, after the start, the database turns out to be one that no waiting mends. */
  onPermanentError: (fault: Error) => void;
}

/** A running gateway: one process of it. */
export interface Gateway {
  readonly app: INestApplication;
  readonly url: string;
  /** Where alone the admin API is; null when it shares `url`. */
  readonly adminUrl: string | null;
  /** Drains, writes what is to be written and closes everything this start opened. */
  stop(): Promise<void>;
}

/**
 * Builds and starts a whole gateway in this process: the same for `npm start`, the image and the tests.
 *
 * @throws an Error whose message names the remedy, when something cannot heal by itself; nothing is left running then
 */
export async function startGateway(
  env: Env,
  options: GatewayOptions,
): Promise<Gateway & Pick<Host, 'adminTokenFile'>> {
  const host = await openHost(env, options.report);
  try {
    const gateway = await serve(host.settings, options);
    const stop = () => gateway.stop().finally(() => host.close());
    return { ...gateway, adminTokenFile: host.adminTokenFile, stop };
  } catch (error) {
    await Promise.allSettled([host.close()]);
    throw error;
  }
}

/**
 * Serves on the port of these settings.
 *
 * @throws an Error whose message names the remedy, when something cannot heal by itself; nothing is left open then
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
    database.onPermanentError = options.onPermanentError;
    const firstKey = app.get(FirstKeyService);
    database.whenReady(async () => {
      if (production) {
        if (await firstKey.isMissing()) options.onNoKey?.();
        return;
      }
      const made = await firstKey.create();
      if (made !== null) options.onFirstKey(made.key);
    });
    serveApiDocs(app, production);
    // Before the database: a start that fails for a taken port must not have made a first key that nobody is shown.
    await app.init();
    options.beforeListening?.(app);
    const release = adapter.hold();
    // A start that failed has no calls to wait for; those it holds back must not keep it from its end.
    opened.add(() => app.get(ShutdownService).drain({ atOnce: !started }));
    await listen(adapter.getHttpServer(), settings, 'PORT', settings.port);
    if (adapter.adminServer !== null)
      await listen(adapter.adminServer, settings, 'ADMIN_PORT', settings.adminPort!);
    options.report('connecting to Postgres');
    // A migration may take longer; calls are answered without the database then, and the gateway can be stopped.
    await database.start(FIRST_LOOK_MS);
    started = true;
    release();
    const url = urlOf(adapter.getHttpServer(), settings);
    const adminUrl = adapter.adminServer && urlOf(adapter.adminServer, settings);
    const logger = new Logger('Postern');
    // For programs; people are told by whoever started this.
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
