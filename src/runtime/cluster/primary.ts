import cluster from 'node:cluster';
import type { StartupMessages, Ready } from './startup-messages.js';
import type { Env } from '../../config/env.js';
import { type Host, openHost } from '../host.js';
import { WorkerMetrics } from './metrics.js';
import { type WorkerEnd, WorkerProcess } from './worker-process.js';
import { patience } from '../../platform/patience.js';

/** A worker that lived shorter than this is replaced after a pause that doubles each time. */
const SHORT_LIFE_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;
/** After the grace a worker needs 12 s at most; a service manager kills the primary soon after. */
const AFTER_GRACE = patience('workers after the grace', 13_000);

export interface PrimaryEvents {
  isStopping: () => boolean;
  /** Called if the workers cannot run because of a permanent error, or did not stop cleanly. Everything is closed then. */
  onError: (text: string) => void;
}

/** Starts the processes that share the port. @throws an Error whose message names the remedy */
export async function startWorkers(
  env: Env,
  messages: StartupMessages,
  events: PrimaryEvents,
): Promise<{ stop(): Promise<void> }> {
  // Settings contain keys as buffers, which JSON cannot carry.
  cluster.setupPrimary({ serialization: 'advanced' });
  const host = await openHost(env, (line) => messages.say(line));
  const primary = new Primary(host, messages, events);
  // Not awaited, so that a start that waits for Postgres can be stopped.
  if (!events.isStopping()) void primary.start();
  return primary;
}

/** Keeps one process running in each worker slot. It serves no requests: the cluster module distributes connections. */
class Primary {
  private readonly running = new Map<number, WorkerProcess>();
  /** Slots whose worker serves. */
  private readonly serving = new Set<number>();
  private readonly pauses = new Map<number, number>();
  private readonly metrics = new WorkerMetrics((slot, sendMetrics) =>
    this.running.get(slot)?.send({ sendMetrics }),
  );
  private readonly workers: number;
  /** True once the first worker was ready. */
  private started = false;
  private stopping: Promise<void> | null = null;
  /** Errors to report once everything is closed. */
  private readonly errors = new Set<string>();

  constructor(
    private readonly host: Host,
    private readonly messages: StartupMessages,
    private readonly events: PrimaryEvents,
  ) {
    this.workers = host.settings.workers;
  }

  /** Starts the first worker alone: it migrates and creates the first key, and its errors would affect all workers. */
  async start(): Promise<void> {
    const ready = await this.fork(1);
    if (ready === null || this.stopping !== null) return;
    this.started = true;
    this.host.publish(ready.adminUrl ?? ready.url);
    const others = Array.from({ length: this.workers - 1 }, (_, i) => this.fork(i + 2));
    await Promise.all(others);
    if (this.stopping !== null) return;
    const { adminTokenFile, settings } = this.host;
    this.messages.serving(ready, { adminTokenFile, env: settings });
    this.messages.say(`${this.workers} workers share the port`);
  }

  stop(): Promise<void> {
    this.stopping ??= this.end().finally(() => {
      if (this.errors.size > 0) this.events.onError([...this.errors].join('\n'));
    });
    return this.stopping;
  }

  private async end(): Promise<void> {
    this.host.publish(null);
    const { shutdownDelayMs, shutdownGraceMs } = this.host.settings;
    const bound = setTimeout(() => this.killAll(), shutdownDelayMs + shutdownGraceMs + AFTER_GRACE.ms);
    const workers = [...this.running.values()];
    for (const worker of workers) worker.stop();
    await Promise.all(workers.map(({ ended }) => ended));
    clearTimeout(bound);
    await this.host.close();
  }

  /** Kills hanging workers, so that the primary can stop the embedded Postgres and exit. */
  private killAll(): void {
    for (const [slot, worker] of this.running) {
      this.errors.add(
        `worker ${slot} did not exit within ${AFTER_GRACE.ms / 1000} s after the grace and was killed; the next start ` +
          'writes the remaining rows of its journal to Postgres',
      );
      worker.kill();
    }
  }

  /** @returns null if it ended before it was ready */
  private fork(slot: number): Promise<Ready | null> {
    return new Promise((resolve) => {
      const worker = new WorkerProcess((message) => {
        if (message === 'listening') {
          this.metrics.join(slot);
          worker.send({ start: { ...this.host.settings, worker: slot } });
        } else if (message === 'no gateway key') this.messages.onNoKey();
        else if ('ready' in message) {
          this.serving.add(slot);
          resolve(message.ready);
        } else if ('database' in message) this.messages.onDatabase(message.database.lacksProvider);
        else if ('metrics' in message)
          this.metrics.receive(slot, message.metrics.request, message.metrics.values);
        else if ('requestAllMetrics' in message) void this.sendAllMetrics(worker, message.requestAllMetrics);
        else this.messages.onKeys(message.keys);
      });
      this.running.set(slot, worker);
      void worker.ended.then((end) => {
        this.running.delete(slot);
        this.serving.delete(slot);
        this.metrics.leave(slot);
        resolve(null);
        this.ended(slot, end);
      });
    });
  }

  private ended(slot: number, { how, error, orderly, lifeMs }: WorkerEnd): void {
    if (this.stopping !== null) {
      if (!orderly) this.errors.add(error ?? `worker ${slot} ${how} while it was being stopped`);
      return;
    }
    // A permanent error stops all workers, unless another one serves: then it affects only this one, and no calls are cut.
    if (error !== null && this.serving.size === 0) this.giveUp(error);
    else if (this.started) this.replace(slot, how, lifeMs);
    else this.giveUp(`worker ${slot} ${how} before it was ready; see its output above, then start again`);
  }

  private async sendAllMetrics(worker: WorkerProcess, request: number): Promise<void> {
    worker.send({ allMetrics: { request, values: await this.metrics.gather() } });
  }

  /** Starts another worker in the slot, which writes the dead worker's journal to Postgres. @param how the worker ended */
  private replace(slot: number, how: string, lifeMs: number): void {
    const before = lifeMs < SHORT_LIFE_MS ? (this.pauses.get(slot) ?? 0) : 0;
    const pause =
      before === 0 ? (lifeMs < SHORT_LIFE_MS ? FIRST_PAUSE_MS : 0) : Math.min(2 * before, MAX_PAUSE_MS);
    this.pauses.set(slot, pause);
    this.messages.say(`worker ${slot} ${how}; starting another${pause > 0 ? ` in ${pause / 1000} s` : ''}`);
    setTimeout(() => {
      if (this.stopping === null) void this.fork(slot);
    }, pause);
  }

  private giveUp(error: string): void {
    this.errors.add(error);
    void this.stop();
  }
}
