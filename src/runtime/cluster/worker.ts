import cluster from 'node:cluster';
import { errorText } from './startup-messages.js';
import type { Settings } from '../../config/settings.js';
import { type Gateway, type GatewayOptions, serve } from '../gateway.js';
import { withLoadedModules } from '../loaded-modules.js';
import { warnOfRejectedKey } from '../rejected-key.js';
import type { ImportedModule } from '../module-tree.js';
import { type MetricValues, MetricsService } from '../../observability/metrics.service.js';
import type { PrimaryMessage, WorkerMessage } from './messages.js';
import { patience } from '../../platform/patience.js';

/** Longer than the primary waits for a worker. */
const METRICS = patience('metrics of all workers', 5_000);

function send(message: WorkerMessage): void {
  process.send!(message);
}

/**
 * Serves as one of several processes that share the port, until the primary sends `stop`. If the primary dies, this
 * process exits at once (cluster documentation, 'disconnect'), so that the next start finds the journal unused.
 */
export function serveAsWorker(root: ImportedModule, setup: GatewayOptions['setup']): void {
  // A terminal and a service manager send their signals to all processes; only the primary handles them.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  let starting: Promise<Gateway> | null = null;
  process.on('message', (message: PrimaryMessage) => {
    if (message === 'stop') {
      const stopped = starting?.then((gateway) => gateway.stop()) ?? Promise.resolve();
      stopped.then(() => process.exit(0), fail);
    } else if ('sendMetrics' in message) {
      void sendMetrics(message.sendMetrics);
    } else if ('allMetrics' in message) {
      pending.get(message.allMetrics.request)?.(message.allMetrics.values);
    } else {
      starting = start(root, message.start, setup);
      starting.catch(fail);
    }
  });
  // If the primary is gone, this process exits anyway.
  cluster.worker!.on('error', () => {});
  send('listening');
}

async function start(
  root: ImportedModule,
  settings: Settings,
  setup: GatewayOptions['setup'],
): Promise<Gateway> {
  const gateway = await serve(await withLoadedModules(root, settings.modules), settings, {
    report: () => {},
    onFirstKey: (firstKey, lacksProvider) => send({ keys: { firstKey, lacksProvider } }),
    onKeysExist: () => send({ keys: { firstKey: null, lacksProvider: false } }),
    onNoKey: () => send('no gateway key'),
    onDatabase: (lacksProvider) => send({ database: { lacksProvider } }),
    setup: async (app) => {
      // Before it listens: calls are served, and counted, while a start still waits for Postgres.
      const own = app.get(MetricsService);
      own.collectFrom(metricsOfAll);
      metrics = own;
      await setup?.(app);
    },
    onPermanentError: fail,
  });
  const { url, adminUrl } = gateway;
  send({ ready: { url, adminUrl } });
  if (settings.worker === 1 && settings.providerKey !== undefined) void warnOfRejectedKey(gateway.app);
  return gateway;
}

/** null before this process listens. */
let metrics: MetricsService | null = null;

async function sendMetrics(request: number): Promise<void> {
  send({ metrics: { request, values: (await metrics?.own()) ?? [] } });
}

/** Scrapes that wait for the primary's response, by request number. */
const pending = new Map<number, (values: MetricValues[]) => void>();
let requests = 0;

/** Requests the metrics from the primary, which collects them from every worker, so that any worker returns the same. */
function metricsOfAll(): Promise<MetricValues[]> {
  const request = ++requests;
  return new Promise<MetricValues[]>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('The primary did not return the metrics.')), METRICS.ms);
    pending.set(request, (values) => {
      clearTimeout(timer);
      resolve(values);
    });
    send({ requestAllMetrics: request });
  }).finally(() => pending.delete(request));
}

/** Sends the error to the primary, which reports it once for all workers, and exits. */
function fail(error: unknown): void {
  process.send!({ error: errorText(error) } satisfies WorkerMessage, () => process.exit(1));
}
