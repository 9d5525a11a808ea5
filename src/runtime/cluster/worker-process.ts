import cluster, { type Worker } from 'node:cluster';
import type { PrimaryMessage, WorkerMessage } from './messages.js';

/** How a worker ended. */
export interface WorkerEnd {
  /** Completes a sentence that starts with the name of the worker. */
  how: string;
  /** The error it reported before it exited, for operators; null if none. */
  error: string | null;
  /** True if it exited with code 0 or was killed by the primary. */
  orderly: boolean;
  lifeMs: number;
}

/** The primary's handle of one worker process. */
export class WorkerProcess {
  /** Resolves when the process is gone or could not be started; never rejects. */
  readonly ended: Promise<WorkerEnd>;
  private readonly startedAt = performance.now();
  private worker: Worker | null = null;
  private listens = false;
  private error: string | null = null;
  private killed = false;

  /** @param onMessage gets its messages, except its error, which is part of `ended` */
  constructor(onMessage: (message: Exclude<WorkerMessage, { error: string }>) => void) {
    this.ended = new Promise((resolve) => {
      const end = (how: string, code: number | null = null) =>
        resolve({
          how,
          error: this.error,
          orderly: code === 0 || this.killed,
          lifeMs: performance.now() - this.startedAt,
        });
      const failed = ({ message }: Error) => end(`could not be started (${message})`);
      try {
        this.worker = cluster.fork();
      } catch (error) {
        // Node throws some errors of spawn(2) and emits the others later.
        failed(error as Error);
        return;
      }
      const { worker } = this;
      worker.on('message', (message: WorkerMessage) => {
        if (typeof message === 'object' && 'error' in message) this.error = message.error;
        else {
          if (message === 'listening') this.listens = true;
          onMessage(message);
        }
      });
      // With a pid an exit event follows: only a message to a dying process failed.
      worker.on('error', (error) => worker.process.pid === undefined && failed(error));
      worker.on('exit', (code, signal) =>
        end(
          this.error !== null
            ? `failed: ${this.error}`
            : signal !== null
              ? `was killed by ${signal}`
              : `exited with code ${code}`,
          code,
        ),
      );
    });
  }

  /** Sends a message; a dying process does not get it, and `ended` follows. */
  send(message: PrimaryMessage): void {
    this.worker?.send(message, () => {});
  }

  /** Requests that it finish its calls and exit; kills it if it does not receive messages yet. */
  stop(): void {
    if (this.listens) this.send('stop');
    else this.kill();
  }

  kill(): void {
    this.killed = true;
    this.worker?.process.kill('SIGKILL');
  }
}
