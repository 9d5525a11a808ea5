import {
  type DynamicModule,
  Global,
  Inject,
  Logger,
  Module,
  type NestApplicationOptions,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { serveApiDocs } from '../admin/api-docs.js';
import type { Env } from '../config/env.js';
import type { Settings } from '../config/settings.js';
import { GatewayLogger } from '../observability/gateway-logger.js';
import { patience, withTimeout } from '../platform/patience.js';
import { GatewayHttpAdapter } from '../proxy/http/gateway-http.adapter.js';
import { type Host, openHost } from './host.js';
import type { ImportedModule } from './module-tree.js';
import { type Addresses, ServingService, START_EVENTS, type StartEvents } from './serving.service.js';
import { collectYoungBuffersEarly } from './young-buffers.js';

/** How long a start that failed waits for the modules to end: an embedded Postgres is stopped after that. */
const FAILED_CLOSE = patience('the end of a failed start', 10_000);

/** The root of every gateway. Nest destroys it first, before the modules that calls in flight use. */
@Module({})
class GatewayRoot implements OnModuleDestroy {
  constructor(private readonly serving: ServingService) {}

  async onModuleDestroy(): Promise<void> {
    await this.serving.drain();
  }
}

const ON_END = Symbol('onEnd');

/** Global and imported first, so that Nest ends it last. */
@Global()
@Module({})
class StartModule implements OnApplicationShutdown {
  constructor(@Inject(ON_END) private readonly onEnd: () => Promise<void>) {}

  async onApplicationShutdown(): Promise<void> {
    await this.onEnd();
    new Logger('Postern').log('Stopped.');
  }
}

/** Makes the application of a module. */
export type MakeApp = (
  module: DynamicModule,
  adapter: GatewayHttpAdapter,
  options: NestApplicationOptions,
) => Promise<NestExpressApplication>;

const makeByFactory: MakeApp = (module, adapter, options) =>
  NestFactory.create<NestExpressApplication>(module, adapter, options);

/** How an application is made. */
export interface AppOptions {
  events: StartEvents;
  make?: MakeApp;
  nest?: NestApplicationOptions;
  /** Called once everything else has ended. */
  onEnd?: () => Promise<void>;
}

/** The application of the gateway below a root module; it listens with `app.listen()`. */
export async function createApp(
  root: ImportedModule,
  settings: Settings,
  { events, make = makeByFactory, nest = {}, onEnd = () => Promise.resolve() }: AppOptions,
): Promise<NestExpressApplication> {
  collectYoungBuffersEarly();
  const start: DynamicModule = {
    module: StartModule,
    providers: [
      { provide: START_EVENTS, useValue: events },
      { provide: ON_END, useValue: onEnd },
    ],
    exports: [START_EVENTS],
  };
  const app = await make({ module: GatewayRoot, imports: [start, root] }, new GatewayHttpAdapter(settings), {
    logger: new GatewayLogger(settings),
    ...nest,
    bodyParser: false,
    abortOnError: false,
  });
  serveApiDocs(app, settings.nodeEnv === 'production');
  return app;
}

/** A running gateway: one process of it. */
export interface Gateway extends Addresses {
  readonly app: NestExpressApplication;
  /** Drains, writes the remaining rows and closes everything this start opened. */
  stop(): Promise<void>;
}

export interface GatewayOptions extends StartEvents {
  /** Called with the application before it is initialised: what Nest's docs do between create() and listen(). */
  setup?: (app: NestExpressApplication) => void | Promise<void>;
  /** Makes the application in place of NestFactory. */
  make?: MakeApp;
}

/**
 * Starts a gateway in this process, for `npm start`, the image and the tests.
 *
 * @throws an Error whose message names the remedy, for permanent errors; nothing is left running
 */
export async function startGateway(
  root: ImportedModule,
  env: Env,
  options: GatewayOptions,
): Promise<Gateway & Pick<Host, 'adminTokenFile'>> {
  const host = await openHost(env, options.report);
  try {
    const gateway = await serve(root, host.settings, options);
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
export async function serve(
  root: ImportedModule,
  settings: Settings,
  options: GatewayOptions,
): Promise<Gateway> {
  const app = await createApp(root, settings, { events: options, make: options.make });
  try {
    await options.setup?.(app);
    await app.init();
    const serving = app.get(ServingService);
    // Not app.listen(), which logs errors itself.
    await serving.open(settings.port);
    // Nest would log an error of the hook that drains, and go on.
    return { app, ...serving.addresses, stop: () => serving.drain().finally(() => app.close()) };
  } catch (error) {
    // A hook of a module that hangs must not keep the error from whoever started this.
    await withTimeout(FAILED_CLOSE.ms, Promise.allSettled([app.close()]));
    throw error;
  }
}
