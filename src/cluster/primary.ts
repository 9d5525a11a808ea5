import cluster from 'node:cluster';
import type { Announcer, Ready } from './startup-messages.js';
import type { Env } from '../config/env.js';
import { type Host, openHost } from '../host.js';
import { WorkerMetrics } from './metrics.js';
import { type WorkerEnd, WorkerProcess } from './worker-process.js';

/** A worker that dies young is not replaced at once, and each time later. */
const YOUNG_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** What follows the grace takes a worker 12 s at most; a service manager kills the primary too before long. */
const AFTER_GRACE_MS = 13_000;

export interface PrimaryEvents {
  isStopping: () => boolean;
  /** Called when the workers cannot run, for nothing that heals, or did not end well; everything is closed then. */
  onFault: (text: string) => void;
}

/** Starts the processes that share the port. @throws an Error whose message names the remedy */
export async function startWorkers(
  env: Env,
  announcer: Announcer,
  events: PrimaryEvents,
): Promise<{ stop(): Promise<void> }> {
  // Settings hold keys, which are bytes.
  cluster.setupPrimary({ serialization: 'advanced' });
  const host = await openHost(env, (line) => announcer.say(line));
  const primary = new Primary(host, announcer, events);
  // Behind: a start that waits for Postgres can be stopped.
  if (!events.isStopping()) void primary.start();
  return primary;
}

/** Keeps one process in each worker's place. It serves nothing itself: the system hands the connections on. */
class Primary {
  private readonly running = new Map<number, WorkerProcess>();
  /** Places whose worker serves. */
  private readonly serving = new Set<number>();
  private readonly pauses = new Map<number, number>();
  private readonly metrics = new WorkerMetrics((place, tellMetrics) =>
    this.running.get(place)?.send({ tellMetrics }),
  );
  private readonly workers: number;
  /** The first worker has shown that one can run here. */
  private started = false;
  private stopping: Promise<void> | null = null;
  /** What goes wrong at the end, told once everything is closed. */
  private readonly faults = new Set<string>();

  constructor(
    private readonly host: Host,
    private readonly announcer: Announcer,
    private readonly events: PrimaryEvents,
  ) {
    this.workers = host.settings.workers;
  }

  /** The first worker alone at first: it migrates, makes the first key, and what ails it would ail them all. */
  async start(): Promise<void> {
    const ready = await this.fork(1);
    if (ready === null || this.stopping !== null) return;
    this.started = true;
    const others = Array.from({ length: this.workers - 1 }, (_, i) => this.fork(i + 2));
    await Promise.all(others);
    if (this.stopping !== null) return;
    this.announcer.ready(ready, this.host.adminTokenFile);
    this.announcer.say(`${this.workers} workers share the port`);
  }

  stop(): Promise<void> {
    this.stopping ??= this.end().finally(() => {
      if (this.faults.size > 0) this.events.onFault([...this.faults].join('\n'));
    });
    return this.stopping;
  }

  private async end(): Promise<void> {
    const { shutdownDelayMs, shutdownGraceMs } = this.host.settings;
    const bound = setTimeout(() => this.killAll(), shutdownDelayMs + shutdownGraceMs + AFTER_GRACE_MS);
    const workers = [...this.running.values()];
    for (const worker of workers) worker.stop();
    await Promise.all(workers.map(({ ended }) => ended));
    clearTimeout(bound);
    await this.host.close();
  }

  /** One that hangs must not keep the others' end, and an embedded Postgres, waiting for ever. */
  private killAll(): void {
    for (const [place, worker] of this.running) {
      this.faults.add(
        `worker ${place} did not end within ${AFTER_GRACE_MS / 1000} s of the grace and was killed; the next start ` +
          'brings what it had not written from its journal',
      );
      worker.kill();
    }
  }

  /** @returns null when it ended before it was ready */
  private fork(place: number): Promise<Ready | null> {
    return new Promise((resolve) => {
      const worker = new WorkerProcess((word) => {
        if (word === 'here') {
          this.metrics.join(place);
          worker.send({ start: { ...this.host.settings, worker: place } });
        } else if (word === 'no key') this.announcer.onNoKey();
        else if ('ready' in word) {
          this.serving.add(place);
          resolve(word.ready);
        } else if ('metrics' in word) this.metrics.told(place, word.metrics.question, word.metrics.figures);
        else if ('wantsMetrics' in word) void this.tellAllMetrics(worker, word.wantsMetrics);
        else this.announcer.onFirstKey(word.firstKey);
      });
      this.running.set(place, worker);
      void worker.ended.then((end) => {
        this.running.delete(place);
        this.serving.delete(place);
        this.metrics.leave(place);
        resolve(null);
        this.ended(place, end);
      });
    });
  }

  private ended(place: number, { how, fault, orderly, lifeMs }: WorkerEnd): void {
    if (this.stopping !== null) {
      if (!orderly) this.faults.add(fault ?? `worker ${place} ${how} while it was being stopped`);
      return;
    }
    // What no waiting mends ends them all. While another serves, it is this one's alone so far, and no reason to cut calls.
    if (fault !== null && this.serving.size === 0) this.giveUp(fault);
    else if (this.started) this.replace(place, how, lifeMs);
    else this.giveUp(`worker ${place} ${how} before it served; see what it printed, and start again`);
  }

  private async tellAllMetrics(worker: WorkerProcess, request: number): Promise<void> {
    worker.send({ allMetrics: { request, figures: await this.metrics.gather() } });
  }

  /** The next one in its place brings the dead one's journal to Postgres. @param how this one ended */
  private replace(place: number, how: string, lifeMs: number): void {
    const before = lifeMs < YOUNG_MS ? (this.pauses.get(place) ?? 0) : 0;
    const pause =
      before === 0 ? (lifeMs < YOUNG_MS ? FIRST_PAUSE_MS : 0) : Math.min(2 * before, LONGEST_PAUSE_MS);
    this.pauses.set(place, pause);
    this.announcer.say(
      `worker ${place} ${how}; another takes its place${pause > 0 ? ` in ${pause / 1000} s` : ''}`,
    );
    setTimeout(() => {
      if (this.stopping === null) void this.fork(place);
    }, pause);
  }

  private giveUp(fault: string): void {
    this.faults.add(fault);
    void this.stop();
  }
}
