import cluster from 'node:cluster';
import type { NestApplicationOptions } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { EnvError } from '../config/env-error.js';
import { namedModules } from '../config/named-modules.js';
import type { Env, PosternOptions } from '../config/env.js';
import { workerCount } from '../config/settings.js';
import { startWorkers } from './cluster/primary.js';
import { errorText, StartupMessages } from './cluster/startup-messages.js';
import { serveAsWorker } from './cluster/worker.js';
import { createApp, startGateway } from './gateway.js';
import { openHost } from './host.js';
import { withLoadedModules } from './loaded-modules.js';
import type { ImportedModule } from './module-tree.js';
import { misspeltBelow, readEnv } from './read-env.js';
import { warnOfRejectedKey } from './rejected-key.js';

/** What an application does between create() and listen() of Nest's docs: CORS, helmet, versioning, a WebSocket adapter. */
export type Setup = (app: NestExpressApplication) => void | Promise<void>;

/** Makes and runs gateways. */
export class PosternFactory {
  /**
   * Runs a gateway as `npm start` does: with messages for people, signals, workers and, without DATABASE_URL, an embedded
   * Postgres. An error ends the process with its text and status 1.
   *
   * @param root the application's module, which imports `PosternModule.forRoot()`
   * @param options settings; they win over those of `forRoot()` and over the environment
   * @param setup is called in each worker
   */
  static async run(
    root: ImportedModule,
    options: PosternOptions = {},
    setup: Setup = () => {},
  ): Promise<void> {
    try {
      if (cluster.isWorker) serveAsWorker(root, setup);
      else {
        const all = await withLoadedModules(root, namedModules());
        const messages = new StartupMessages();
        // Before the errors, which it may explain.
        for (const line of await misspeltBelow(all)) messages.say(line);
        await new Run(all, setup, messages).start(await readEnv(all, options));
      }
    } catch (error) {
      failWith(error);
    }
  }

  /**
   * As `NestFactory.create()`, with the HTTP adapter of the gateway: one process, which needs DATABASE_URL and listens with
   * `app.listen()`.
   *
   * @throws EnvError; LoadError; Error if the module does not import PosternModule
   */
  static async create(
    root: ImportedModule,
    { settings, ...nest }: NestApplicationOptions & { settings?: PosternOptions } = {},
  ): Promise<NestExpressApplication> {
    const all = await withLoadedModules(root, namedModules());
    const messages = new StartupMessages();
    for (const line of await misspeltBelow(all)) messages.say(line);
    const env = await readEnv(all, settings ?? {});
    if (env.databaseUrl === undefined)
      throw new EnvError([
        'DATABASE_URL: must be set; only PosternFactory.run() starts an embedded Postgres',
      ]);
    // What a run with several processes left in its journals is written by this one.
    const host = await openHost({ ...env, workers: 1 }, () => {});
    try {
      const app = await createApp(all, host.settings, {
        nest,
        events: {
          report: () => {},
          onFirstKey: (firstKey, lacksProvider) => messages.onKeys({ firstKey, lacksProvider }),
          onNoKey: () => messages.onNoKey(),
          onDatabase: (lacksProvider) => messages.onDatabase(lacksProvider),
          onServing: (addresses) => {
            host.publish(addresses.adminUrl ?? addresses.url);
            messages.serving(addresses, { adminTokenFile: host.adminTokenFile, env });
          },
          onPermanentError: (error) => void app.close().finally(() => failWith(error)),
        },
        onEnd: () => {
          host.publish(null);
          return host.close();
        },
      });
      return app;
    } catch (error) {
      await Promise.allSettled([host.close()]);
      throw error;
    }
  }
}

function fail(text: string): never {
  process.stderr.write(`postern: ${text}\n`);
  process.exit(1);
}

const failWith = (error: unknown) => fail(errorText(error));

/** A running gateway, in one or several processes. */
interface Running {
  stop(): Promise<void>;
}

/** npm passes on a Ctrl-C that the terminal sends to this process too. A second one by a person comes later. */
const DOUBLE_MS = 300;

/** A gateway that runs until a signal stops it. */
class Run {
  private stopping = false;

  constructor(
    private readonly root: ImportedModule,
    private readonly setup: Setup,
    private readonly messages: StartupMessages,
  ) {}

  async start(env: Env): Promise<void> {
    const starting =
      workerCount(env) === 1
        ? this.startAlone(env)
        : startWorkers(env, this.messages, { isStopping: () => this.stopping, onError: fail });
    this.stopOnSignals(starting);
    await starting;
    // `npm start` then builds the console.
    if (process.connected) process.send!({ ready: true, console: env.console === 'on' });
  }

  private async startAlone(env: Env): Promise<Running> {
    const { messages } = this;
    const starting = startGateway(this.root, env, {
      report: (line) => messages.say(line),
      onFirstKey: (firstKey, lacksProvider) => messages.onKeys({ firstKey, lacksProvider }),
      onKeysExist: () => messages.onKeys({ firstKey: null, lacksProvider: false }),
      onNoKey: () => messages.onNoKey(),
      onDatabase: (lacksProvider) => messages.onDatabase(lacksProvider),
      // Closes what this start opened: an embedded Postgres must not outlive this process.
      onPermanentError: (error) =>
        void starting.then((gateway) => gateway.stop()).finally(() => failWith(error)),
      setup: this.setup,
    });
    const gateway = await starting;
    if (env.providerKey !== undefined) void warnOfRejectedKey(gateway.app);
    if (!this.stopping) messages.serving(gateway, { adminTokenFile: gateway.adminTokenFile, env });
    return gateway;
  }

  /** Installed before the start, so that a start that is stopped half-way leaves no embedded Postgres behind. */
  private stopOnSignals(starting: Promise<Running>): void {
    let stoppedAt = -Infinity;
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      process.on(signal, () => {
        if (signal !== 'SIGTERM' && performance.now() - stoppedAt < DOUBLE_MS) return;
        if (this.stopping) process.exit(1);
        this.stopping = true;
        stoppedAt = performance.now();
        this.messages.stopping();
        starting.then((running) => running.stop()).then(() => process.exit(0), failWith);
      });
    }
  }
}
