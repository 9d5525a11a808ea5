import { Module, type ModuleMetadata } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { SETTINGS } from '../config/config.module.js';
import type { PosternOptions } from '../config/env.js';
import type { Settings } from '../config/settings.js';
import { PosternModule } from '../postern.module.js';
import type { ImportedModule } from '../runtime/module-tree.js';
import { eventually } from './eventually.js';
import { type Overrides, withOverrides } from './overrides.js';
import { changesApplied, runGateway, type RunningGateway, untilReady } from './run-gateway.js';
import { createDatabase, type TestDatabase } from './test-database.js';

const ROW_WITHIN_MS = 30_000;

/** What a gateway of a test consists of. */
export interface TestGatewayOptions {
  /** Your modules. The gateway imports them beside its own. */
  modules?: ModuleMetadata['imports'];
  /** Your application's module, in place of `modules`: it imports `PosternModule.forRoot()`. */
  root?: ImportedModule;
  /** Settings; they win over those of `forRoot()`. With `providerUrl`, there is a `providerKey` too. */
  settings?: Omit<PosternOptions, 'databaseUrl' | 'dataDir'>;
  /** Its environment variables, such as those that your modules declare. It reads neither yours nor `.env`. */
  variables?: Record<string, string>;
  /** Replaces parts of it, with `@nestjs/testing`: `(builder) => builder.overrideProvider(Rates).useValue(rates)`. */
  override?: (builder: Overrides) => unknown;
  /** As the `setup` of `PosternFactory.run()`. */
  setup?: (app: NestExpressApplication) => void | Promise<void>;
  /** Its database, as of another gateway. It is not dropped. */
  database?: TestDatabase;
}

/** A gateway in this process, on real sockets. */
export interface TestGateway {
  readonly url: string;
  /** Where the admin API is: `url`, unless `settings` has an `adminPort`. */
  readonly adminUrl: string;
  readonly adminToken: string;
  /** The first gateway key, of team `default`: for calls to providers. Empty with `nodeEnv: 'production'`. */
  readonly key: string;
  readonly app: NestExpressApplication;
  readonly database: TestDatabase;
  /** Calls the admin API, and fails unless the response is a success: `admin('POST', '/teams', { name: 'a' })`. Undefined for a response without a body. */
  admin<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T>;
  /** A new gateway key. @param properties as of `POST /keys`; without them, a key of team `default` */
  createKey(properties?: object): Promise<string>;
  /**
   * The row of a call in the request log, once it is there.
   *
   * @param requestId header `x-gateway-request-id` of the response
   * @param withinMs fails after so long: rejected calls have no row
   */
  row(requestId: string, withinMs?: number): Promise<RequestRow>;
  /** Stops the gateway and drops its database. */
  stop(): Promise<void>;
}

/** A row of the table `request_log`, by the names of its columns, with the values that `pg` makes of them. */
export type RequestRow = Record<string, unknown> & { id: string; outcome: string; status: number | null };

/**
 * Starts a gateway on a free port, with a database of its own, on the Postgres of TEST_DATABASE_URL or an embedded one. It
 * is ready when the promise resolves.
 *
 * @throws Error, as a start of the gateway does; nothing is left
 */
export async function startGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const { modules = [], root, override, database: shared, ...rest } = options;
  if (root !== undefined && modules.length > 0)
    throw new Error('give either modules or root, whose imports are the modules');
  const database = shared ?? (await createDatabase());
  const drop = async () => {
    if (shared === undefined) await database.drop();
  };
  let running: RunningGateway | undefined;
  try {
    running = await runGateway({
      ...rest,
      root: root ?? rootOf(modules),
      database,
      make: override && withOverrides(override),
    });
    await untilReady(running.gateway);
    await changesApplied(running.gateway, database);
  } catch (error) {
    await running?.stop();
    await drop();
    throw error;
  }
  const started = running;
  let stopped: Promise<void> | undefined;
  return Object.defineProperty(handle(running, database), 'stop', {
    value: () => (stopped ??= started.stop().finally(drop)),
  }) as TestGateway;
}

function rootOf(modules: NonNullable<ModuleMetadata['imports']>): ImportedModule {
  class TestRoot {}
  // Not a dynamic module: Nest registers the imports of one before those of its class.
  Module({ imports: [PosternModule.forRoot(), ...modules] })(TestRoot);
  return TestRoot;
}

/** What a test does with a gateway that runs. */
export function handle(running: RunningGateway, database: TestDatabase): Omit<TestGateway, 'stop'> {
  const { gateway } = running;
  const { adminToken = '' } = gateway.app.get<Settings>(SETTINGS);
  const adminUrl = gateway.adminUrl ?? gateway.url;
  let keys = 0;
  const admin = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await fetch(`${adminUrl}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    const text = await response.text();
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };
  return {
    url: gateway.url,
    adminUrl,
    adminToken,
    get key() {
      return running.key;
    },
    app: gateway.app,
    database,
    admin,
    createKey: async (properties = {}) => {
      const name = `key-${++keys}`;
      const made = await admin<{ key: string }>('POST', '/keys', { team: 'default', name, ...properties });
      await changesApplied(gateway, database);
      return made.key;
    },
    row: (requestId, withinMs = ROW_WITHIN_MS) =>
      eventually(
        async () =>
          (await database.query<RequestRow>('SELECT * FROM request_log WHERE id = $1', [requestId]))[0],
        withinMs,
        `no row of the call ${requestId}`,
      ),
  };
}
