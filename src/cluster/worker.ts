import cluster from 'node:cluster';
import { faultText } from './startup-messages.js';
import type { Settings } from '../config/settings.js';
import { type Gateway, serve } from '../gateway.js';
import { type MetricValues, MetricsService } from '../observability/metrics.service.js';
import { ProvidersService } from '../providers/providers.service.js';
import type { Order, Word } from './messages.js';

/** The primary gives up on a worker that does not answer long before. */
const METRICS_MS = 5_000;

function tell(word: Word): void {
  process.send!(word);
}

/**
 * Serves as one of several processes that share the port, until the primary says stop. When that one dies, this one
 * does so too, at once (cluster documentation, 'disconnect'): who starts next must find no other process at the journal.
 */
export function serveAsWorker(): void {
  // A terminal and a service manager send their signals to all processes; only the primary minds them.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  let starting: Promise<Gateway> | null = null;
  process.on('message', (order: Order) => {
    if (order === 'stop') {
      const stopped = starting?.then((gateway) => gateway.stop()) ?? Promise.resolve();
      stopped.then(() => process.exit(0), giveUp);
    } else if ('tellMetrics' in order) {
      void tellMetrics(order.tellMetrics);
    } else if ('allMetrics' in order) {
      wanted.get(order.allMetrics.request)?.(order.allMetrics.figures);
    } else {
      starting = start(order.start);
      starting.catch(giveUp);
    }
  });
  // The primary may be gone by now; that ends this process anyway.
  cluster.worker!.on('error', () => {});
  tell('here');
}

async function start(settings: Settings): Promise<Gateway> {
  const gateway = await serve(settings, {
    report: () => {},
    onFirstKey: (firstKey) => tell({ firstKey }),
    onNoKey: () => tell('no key'),
    // Calls are answered before a start that waits for Postgres is over, and they count.
    beforeListening: (app) => {
      const own = app.get(MetricsService);
      own.ofAll = metricsOfAll;
      metrics = own;
    },
    onPermanentError: giveUp,
  });
  const { url, adminUrl, app } = gateway;
  tell({ ready: { url, adminUrl, lacksProvider: app.get(ProvidersService).lacksDefault } });
  return gateway;
}

/** null before this process listens. */
let metrics: MetricsService | null = null;

async function tellMetrics(question: number): Promise<void> {
  tell({ metrics: { question, figures: (await metrics?.own()) ?? [] } });
}

/** Scrapes that wait for the primary's answer. */
const wanted = new Map<number, (figures: MetricValues[]) => void>();
let requests = 0;

/** Asks the primary, which asks every worker: whichever of them a scrape reaches, it tells the same. */
function metricsOfAll(): Promise<MetricValues[]> {
  const request = ++requests;
  return new Promise<MetricValues[]>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('The primary did not tell the metrics.')), METRICS_MS);
    wanted.set(request, (figures) => {
      clearTimeout(timer);
      resolve(figures);
    });
    tell({ wantsMetrics: request });
  }).finally(() => wanted.delete(request));
}

/** The primary says why, once for all workers. */
function giveUp(error: unknown): void {
  process.send!({ fault: faultText(error) } satisfies Word, () => process.exit(1));
}
