import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { describeError } from '../errors/describe-error.js';
import type { CatalogPrice } from './catalog-prices.js';

/** The thread ends after this time without a question: models are resolved once, so that it is seldom needed. */
const IDLE_MS = 300_000;
/** After an error, questions fail at once for this long. */
const PAUSE_MS = 60_000;

export interface CatalogQuestion {
  id: number;
  catalog: string;
  model: string;
}

export interface CatalogAnswer {
  id: number;
  /** Empty if the catalog does not have the model. */
  prices: CatalogPrice[];
}

interface Asked {
  resolve: (prices: CatalogPrice[]) => void;
  reject: (error: Error) => void;
}

/** The price catalog, in a thread of its own that runs while it is needed. */
@Injectable()
export class CatalogService implements OnApplicationShutdown {
  readonly version = catalogVersion();
  private readonly logger = new Logger('Prices');
  private readonly asked = new Map<number, Asked>();
  private worker: Worker | null = null;
  private idleTimer: NodeJS.Timeout | undefined;
  private lastId = 0;
  private pausedUntil = -Infinity;
  private stopped = false;

  /** Starts the thread, so that the first question needs not wait for it. */
  warm(): void {
    if (!this.stopped) this.running();
  }

  /**
   * The prices of a model; none if the catalog does not have it.
   *
   * @throws Error if the catalog cannot be loaded; it is tried again after a minute
   */
  resolve(catalog: string, model: string): Promise<CatalogPrice[]> {
    if (this.stopped || performance.now() < this.pausedUntil)
      return Promise.reject(new Error('the price catalog is not available'));
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      this.running().postMessage({ id, catalog, model } satisfies CatalogQuestion);
    });
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.idleTimer);
    await this.worker?.terminate();
  }

  private running(): Worker {
    this.idleTimer ??= setTimeout(() => this.endIfIdle(), IDLE_MS).unref();
    this.idleTimer.refresh();
    return (this.worker ??= this.start());
  }

  private start(): Worker {
    // No variables: the thread needs none of the secrets in them.
    const worker = new Worker(new URL('./catalog-worker.js', import.meta.url), { env: {}, execArgv: [] });
    worker.unref();
    worker.on('message', (answer: CatalogAnswer) => {
      this.asked.get(answer.id)?.resolve(answer.prices);
      this.asked.delete(answer.id);
    });
    worker.on('error', (error) => {
      this.pausedUntil = performance.now() + PAUSE_MS;
      this.logger.error(`The price catalog could not be used: ${describeError(error)}`);
    });
    worker.on('exit', () => {
      if (this.worker === worker) this.worker = null;
      for (const { reject } of this.asked.values()) reject(new Error('the price catalog has ended'));
      this.asked.clear();
    });
    return worker;
  }

  private endIfIdle(): void {
    this.idleTimer = undefined;
    if (this.asked.size === 0) void this.worker?.terminate();
  }
}

/** Increased when prices are read from the same catalog in another way, so that stored ones are replaced. */
const READING = 2;

function catalogVersion(): string {
  const manifest = new URL('../package.json', import.meta.resolve('@pydantic/genai-prices'));
  return `${(JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version}.${READING}`;
}
