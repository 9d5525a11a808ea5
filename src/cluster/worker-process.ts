import cluster, { type Worker } from 'node:cluster';
import type { Order, Word } from './messages.js';

/** How a worker came to its end. */
export interface WorkerEnd {
  /** In words that follow its name. */
  how: string;
  /** What it gave up for, if it did, in words for an operator. */
  fault: string | null;
  /** It was done, or killed from here. */
  orderly: boolean;
  lifeMs: number;
}

/** One process that serves, as the primary sees it. */
export class WorkerProcess {
  /** Settles when it is gone or could not be started; never rejects. */
  readonly ended: Promise<WorkerEnd>;
  private readonly bornAt = performance.now();
  private worker: Worker | null = null;
  private listens = false;
  private fault: string | null = null;
  private killed = false;

  /** @param hear gets what it says, but its fault, which comes with its end */
  constructor(hear: (word: Exclude<Word, { fault: string }>) => void) {
    this.ended = new Promise((resolve) => {
      const end = (how: string, code: number | null = null) =>
        resolve({
          how,
          fault: this.fault,
          orderly: code === 0 || this.killed,
          lifeMs: performance.now() - this.bornAt,
        });
      const failed = ({ message }: Error) => end(`could not be started (${message})`);
      try {
        this.worker = cluster.fork();
      } catch (error) {
        // Of the faults of spawn(2), Node throws some and tells of the others later.
        failed(error as Error);
        return;
      }
      const { worker } = this;
      worker.on('message', (word: Word) => {
        if (typeof word === 'object' && 'fault' in word) this.fault = word.fault;
        else {
          if (word === 'here') this.listens = true;
          hear(word);
        }
      });
      // With a process there is an exit to come, and what failed was to reach one that is just dying.
      worker.on('error', (error) => worker.process.pid === undefined && failed(error));
      worker.on('exit', (code, signal) =>
        end(
          this.fault === null ? `ended by ${signal ?? `exit code ${code}`}` : `gave up: ${this.fault}`,
          code,
        ),
      );
    });
  }

  /** One that is just dying cannot be told; its end is. */
  send(order: Order): void {
    this.worker?.send(order, () => {});
  }

  /** Has it end its calls and go; at once when it does not listen yet. */
  stop(): void {
    if (this.listens) this.send('stop');
    else this.kill();
  }

  kill(): void {
    this.killed = true;
    this.worker?.process.kill('SIGKILL');
  }
}
