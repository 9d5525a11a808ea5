import 'reflect-metadata';
import cluster from 'node:cluster';
import { errorText, StartupMessages } from './runtime/cluster/startup-messages.js';
import { type Env, loadEnv } from './config/env.js';
import { workerCount } from './config/settings.js';
import { startGateway } from './runtime/gateway.js';
import { RoutesService } from './routes/routes.service.js';
import { startWorkers } from './runtime/cluster/primary.js';
import { serveAsWorker } from './runtime/cluster/worker.js';

/** A running gateway, in one or several processes. */
interface Running {
  stop(): Promise<void>;
}

function fail(text: string): never {
  process.stderr.write(`postern: ${text}\n`);
  process.exit(1);
}

const failWith = (error: unknown) => fail(errorText(error));

/** Starts the gateway in this process. */
async function startAlone(env: Env, messages: StartupMessages): Promise<Running> {
  const starting = startGateway(env, {
    report: (line) => messages.say(line),
    onFirstKey: (firstKey, lacksProvider) => messages.onKeys({ firstKey, lacksProvider }),
    onKeysExist: () => messages.onKeys({ firstKey: null, lacksProvider: false }),
    onNoKey: () => messages.onNoKey(),
    // Closes what this start opened: an embedded Postgres must not outlive this process.
    onPermanentError: (error) =>
      void starting.then((gateway) => gateway.stop()).finally(() => failWith(error)),
  });
  const gateway = await starting;
  if (!stopping) {
    const lacksProvider = gateway.app.get(RoutesService).lacksDefault;
    messages.ready({ ...gateway, lacksProvider }, gateway.adminTokenFile);
  }
  return gateway;
}

let stopping = false;

/** Installed before the start, so that a start that is stopped half-way leaves no embedded Postgres behind. */
function stopOnSignals(starting: Promise<Running>, messages: StartupMessages): void {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      messages.stopping();
      starting.then((running) => running.stop()).then(() => process.exit(0), failWith);
    });
  }
}

function main(): void {
  const env = loadEnv();
  const messages = new StartupMessages();
  const isStopping = () => stopping;
  const starting: Promise<Running> =
    workerCount(env) === 1
      ? startAlone(env, messages)
      : startWorkers(env, messages, { isStopping, onError: fail });
  stopOnSignals(starting, messages);
  starting.then(() => {
    // `npm start` then builds the console.
    if (process.connected) process.send!({ ready: true, console: env.console === 'on' });
  }, failWith);
}

try {
  if (cluster.isWorker) serveAsWorker();
  else main();
} catch (error) {
  failWith(error);
}
