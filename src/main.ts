import 'reflect-metadata';
import cluster from 'node:cluster';
import { Announcer, faultText } from './cluster/startup-messages.js';
import { type Env, loadEnv } from './config/env.js';
import { workerCount } from './config/settings.js';
import { startGateway } from './gateway.js';
import { ProvidersService } from './providers/providers.service.js';
import { startWorkers } from './cluster/primary.js';
import { serveAsWorker } from './cluster/worker.js';

/** What runs, until it is told to stop. */
interface Running {
  stop(): Promise<void>;
}

function giveUp(text: string): never {
  process.stderr.write(`postern: ${text}\n`);
  process.exit(1);
}

const giveUpFor = (error: unknown) => giveUp(faultText(error));

/** One process does everything. */
async function startAlone(env: Env, announcer: Announcer): Promise<Running> {
  const starting = startGateway(env, {
    report: (line) => announcer.say(line),
    onFirstKey: (key) => announcer.onFirstKey(key),
    onNoKey: () => announcer.onNoKey(),
    // What this start opened is closed: an embedded Postgres must not outlive a process that has given up.
    onPermanentError: (fault) =>
      void starting.then((gateway) => gateway.stop()).finally(() => giveUpFor(fault)),
  });
  const gateway = await starting;
  if (!stopping) {
    const lacksProvider = gateway.app.get(ProvidersService).lacksDefault;
    announcer.ready({ ...gateway, lacksProvider }, gateway.adminTokenFile);
  }
  return gateway;
}

let stopping = false;

/** From the first moment: a start that is stopped half-way must not leave an embedded Postgres behind. */
function stopOnSignals(starting: Promise<Running>, announcer: Announcer): void {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      announcer.stopping();
      starting.then((running) => running.stop()).then(() => process.exit(0), giveUpFor);
    });
  }
}

function main(): void {
  const env = loadEnv();
  const announcer = new Announcer();
  const isStopping = () => stopping;
  const starting =
    workerCount(env) === 1
      ? startAlone(env, announcer)
      : startWorkers(env, announcer, { isStopping, onFault: giveUp });
  stopOnSignals(starting, announcer);
  starting.catch(giveUpFor);
}

try {
  if (cluster.isWorker) serveAsWorker();
  else main();
} catch (error) {
  giveUpFor(error);
}
