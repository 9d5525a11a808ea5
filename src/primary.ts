import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { Announcer, Ready } from './announce.js';
import type { Env } from './config/env.js';
import { type Host, openHost } from './host.js';
import type { Order, Word } from './worker-messages.js';
import { WorkerMetrics } from './worker-metrics.js';

/** A worker that dies young is not replaced at once, and each time later. */
const YOUNG_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

export interface PrimaryEvents {
  isStopping: () => boolean;
  /** Called when what keeps the workers from running is nothing that heals; everything is closed then. */
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
  if (!events.isStopping()) await primary.start();
  return primary;
}

/** Keeps one process in each worker's place. It serves nothing itself: the system hands the connections on. */
class Primary {
  private readonly running = new Map<number, Worker>();
  private readonly listening = new WeakSet<Worker>();
  /** Places whose worker serves. */
  private readonly serving = new Set<number>();
  private readonly pauses = new Map<number, number>();
  private readonly metrics = new WorkerMetrics((worker, tellMetrics) => send(worker, { tellMetrics }));
  private readonly workers: number;
  /** The first worker has shown that one can run here. */
  private started = false;
  private stopped = false;

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
    if (ready === null || this.stopped) return;
    this.started = true;
    const others = Array.from({ length: this.workers - 1 }, (_, i) => this.fork(i + 2));
    await Promise.all(others);
    if (this.events.isStopping()) return;
    this.announcer.ready(ready, this.host.adminTokenFile);
    this.announcer.say(`${this.workers} workers share the port`);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    const ends = [...this.running.values()].map((worker) => {
      if (this.listening.has(worker)) send(worker, 'stop');
      else worker.process.kill('SIGKILL');
      return once(worker, 'exit');
    });
    await Promise.all(ends);
    await this.host.close();
  }

  /** @returns null when it ended before it was ready */
  private fork(place: number): Promise<Ready | null> {
    const worker = cluster.fork();
    const bornAt = performance.now();
    let fault: string | null = null;
    this.running.set(place, worker);
    return new Promise((resolve) => {
      worker.on('message', (word: Word) => {
        if (word === 'here') {
          this.listening.add(worker);
          send(worker, { start: { ...this.host.settings, worker: place } });
        } else if (word === 'no key') this.announcer.onNoKey();
        else if ('ready' in word) {
          this.metrics.join(place, worker);
          this.serving.add(place);
          resolve(word.ready);
        } else if ('metrics' in word) this.metrics.told(place, word.metrics.question, word.metrics.figures);
        else if ('wantsMetrics' in word) void this.tellAllMetrics(worker, word.wantsMetrics);
        else if ('firstKey' in word) this.announcer.onFirstKey(word.firstKey);
        else fault = word.fault;
      });
      worker.on('exit', (code, signal) => {
        this.running.delete(place);
        this.serving.delete(place);
        this.metrics.leave(place);
        resolve(null);
        this.ended(place, fault, signal ?? `exit code ${code}`, performance.now() - bornAt);
      });
    });
  }

  /** @param fault what the worker itself gave up for, if it did */
  private ended(place: number, fault: string | null, how: string, lifeMs: number): void {
    if (this.stopped) return;
    // What no waiting mends ends them all. While another serves, it is this one's alone so far, and no reason to cut calls.
    if (fault !== null && this.serving.size === 0) this.giveUp(fault);
    else if (this.started)
      this.replace(place, fault === null ? `ended by ${how}` : `gave up: ${fault}`, lifeMs);
    else
      this.giveUp(`worker ${place} ended by ${how} before it served; see what it printed, and start again`);
  }

  private async tellAllMetrics(worker: Worker, request: number): Promise<void> {
    send(worker, { allMetrics: { request, figures: await this.metrics.gather() } });
  }

  /** The next one in its place brings the dead one's journal to Postgres. @param end how this one came to it */
  private replace(place: number, end: string, lifeMs: number): void {
    const before = lifeMs < YOUNG_MS ? (this.pauses.get(place) ?? 0) : 0;
    const pause =
      before === 0 ? (lifeMs < YOUNG_MS ? FIRST_PAUSE_MS : 0) : Math.min(2 * before, LONGEST_PAUSE_MS);
    this.pauses.set(place, pause);
    this.announcer.say(
      `worker ${place} ${end}; another takes its place${pause > 0 ? ` in ${pause / 1000} s` : ''}`,
    );
    setTimeout(() => {
      if (!this.stopped) void this.fork(place);
    }, pause);
  }

  private giveUp(fault: string): void {
    if (this.stopped) return;
    void this.stop().finally(() => this.events.onFault(fault));
  }
}

/** A worker that is just dying cannot be told; its exit is. */
function send(worker: Worker, order: Order): void {
  worker.send(order, () => {});
}
