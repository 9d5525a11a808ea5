import type { AddressInfo, Server } from 'node:net';
import { Inject, Injectable, Logger, type OnModuleInit, Optional } from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { FirstKeyService } from '../keys/first-key.service.js';
import { ShutdownService } from '../observability/shutdown.service.js';
import { GatewayHttpAdapter } from '../proxy/http/gateway-http.adapter.js';
import { RoutesService } from '../routes/routes.service.js';
import { listen, tryPorts } from './listen.js';
import { patience } from '../platform/patience.js';

/** How long the start, and the calls that arrive during it, wait at most for the first connection to Postgres. */
const FIRST_LOOK = patience('the first connection to Postgres', 5_000);

/** What whoever starts a gateway is told. */
export interface StartEvents {
  /** Gets one line for each step of the start. */
  report: (line: string) => void;
  /** Gets the first gateway key if this start created one; after the start if Postgres was unavailable at first. */
  onFirstKey: (key: string, lacksProvider: boolean) => void;
  /** Called instead if there are gateway keys or teams (not in production). */
  onKeysExist?: () => void;
  /** Called if there is no gateway key and this start must not create one (production). */
  onNoKey?: () => void;
  /** Called when calls are served, perhaps without Postgres. */
  onServing?: (addresses: Addresses) => void;
  /** Called when Postgres was reached; perhaps not before calls are served. */
  onDatabase?: (lacksProvider: boolean) => void;
  /** Called if the database has a permanent error after the start. */
  onPermanentError: (error: Error) => void;
}

/** Injection token of StartEvents. */
export const START_EVENTS = Symbol('StartEvents');

/** Where a gateway serves. */
export interface Addresses {
  readonly url: string;
  /** URL of the admin API if it has a port of its own; null if it shares `url`. */
  readonly adminUrl: string | null;
}

/** Listens, connects to Postgres, creates the first key, and stops in an order that cuts no call. */
@Injectable()
export class ServingService implements OnModuleInit {
  private started = false;
  private listeningOn = '';
  private draining: Promise<void> | null = null;

  constructor(
    private readonly host: HttpAdapterHost<GatewayHttpAdapter>,
    private readonly database: DatabaseService,
    private readonly firstKey: FirstKeyService,
    private readonly routes: RoutesService,
    private readonly shutdown: ShutdownService,
    private readonly config: ApplicationConfig,
    private readonly modules: ModulesContainer,
    @InjectSettings() private readonly settings: Settings,
    @Optional() @Inject(START_EVENTS) private readonly events?: StartEvents,
  ) {}

  /** @throws Error for a prefix, or a second scheduler */
  onModuleInit(): void {
    if (this.config.getGlobalPrefix() !== '')
      throw new Error(
        'setGlobalPrefix() would move the calls, /health and the admin API, whose paths are fixed; give your own ' +
          'controllers the prefix: @Controller("api/widgets")',
      );
    if ([...this.modules.values()].filter(({ metatype }) => metatype === ScheduleModule).length > 1)
      throw new Error(
        'ScheduleModule.forRoot() is imported besides the one of PosternModule, so that every job would run twice; remove ' +
          'it: @Cron(), @Interval(), @Timeout() and SchedulerRegistry work without it',
      );
    const adapter = this.host.httpAdapter;
    if (!(adapter instanceof GatewayHttpAdapter)) return;
    adapter.open = async (port, host = this.settings.host) => {
      // Nest's listen() would report what Node says of a port in use.
      await tryPorts({ ...this.settings, port, host });
      await this.open(port, host);
    };
  }

  /**
   * Listens on the ports. Calls wait until Postgres was looked for; where it is unavailable, they are served without it.
   *
   * @param host an address; undefined: the one of the settings
   * @throws ListenError; PermanentDatabaseError
   */
  async open(port: number, host = this.settings.host): Promise<void> {
    const { settings, database } = this;
    this.listeningOn = host;
    const adapter = this.host.httpAdapter;
    // After the hooks of the modules, which read providers and routes.
    database.whenReady(async () => {
      await this.findKeys();
      this.events?.onDatabase?.(this.routes.lacksDefault);
    });
    // Before the database: a start that fails because its port is in use must not create a first key that nobody sees.
    const release = adapter.hold();
    await listen(adapter.getHttpServer(), { ...settings, host }, 'PORT', port);
    if (adapter.adminServer !== null)
      await listen(adapter.adminServer, settings, 'ADMIN_PORT', settings.adminPort!);
    this.events?.report('connecting to Postgres');
    // A migration may take longer. Meanwhile calls are served without the database, and the gateway can be stopped.
    await database.start(FIRST_LOOK.ms, this.events?.onPermanentError);
    this.started = true;
    release();
    const { url, adminUrl } = this.addresses;
    // For programs; the start-up messages are for people.
    if (settings.nodeEnv === 'production')
      new Logger('Postern').log(`Serving on ${url}`, { url, admin_url: adminUrl, node: process.version });
    this.events?.onServing?.({ url, adminUrl });
  }

  /** Known once it listens. */
  get addresses(): Addresses {
    const { adminServer } = this.host.httpAdapter;
    const server = this.host.httpAdapter.getHttpServer() as Server;
    return { url: this.urlOf(server), adminUrl: adminServer && this.urlOf(adminServer) };
  }

  /** Lets calls end, as SHUTDOWN_GRACE_MS says; a failed start does not wait for calls that it holds back. Later calls get the same result. */
  drain(): Promise<void> {
    return (this.draining ??= this.shutdown.drain({ atOnce: !this.started }));
  }

  private urlOf(server: Server): string {
    const { port } = server.address() as AddressInfo;
    const host = this.listeningOn;
    return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  }

  private async findKeys(): Promise<void> {
    if (this.settings.nodeEnv === 'production') {
      if (await this.firstKey.isMissing()) this.events?.onNoKey?.();
      return;
    }
    const made = await this.firstKey.create();
    if (made === null) this.events?.onKeysExist?.();
    else this.events?.onFirstKey(made.key, this.routes.lacksDefault);
  }
}
