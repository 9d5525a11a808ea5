import { type ChildProcess, fork } from 'node:child_process';
import { resolve } from 'node:path';
import { afterFile } from '../support/after-file.js';
import type { LedgerSettings } from './ledger-process.js';
import type { Report, Work } from './spender.js';

/** As the tests are compiled. */
const SPENDER = resolve(__dirname, '../../.test-build/test/limits/spender.js');

const running = new Set<ChildProcess>();

afterFile(() => {
  for (const child of running) child.kill('SIGKILL');
  return Promise.resolve();
});

/** A process of its own that uses limits. */
export class Spender {
  readonly ready: Promise<void>;
  /** Its report; null if it was killed. */
  readonly done: Promise<Report | null>;
  private readonly child: ChildProcess;

  constructor(settings: LedgerSettings, work: Work) {
    this.child = fork(SPENDER, [JSON.stringify([settings, work])], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    running.add(this.child);
    let report: Report | null = null;
    this.ready = new Promise((ready, failed) => {
      this.child.on('message', (message: Report | 'ready') => {
        if (message === 'ready') ready();
        else report = message;
      });
      this.child.once('exit', (code, signal) => failed(new Error(`the process ended: ${code ?? signal}`)));
    });
    this.ready.catch(() => {});
    this.done = new Promise((done, failed) => {
      this.child.once('exit', (code, signal) => {
        running.delete(this.child);
        if (report !== null || signal === 'SIGKILL') done(report);
        else failed(new Error(`a process ended without a report: ${code ?? signal}`));
      });
    });
    this.done.catch(() => {});
  }

  go(): void {
    this.child.send('go');
  }

  /** As if the machine had died, for this process alone. */
  kill(): void {
    this.child.kill('SIGKILL');
  }
}

/** Starts these processes and lets them begin together. */
export async function spend(settings: LedgerSettings[], work: Work): Promise<Spender[]> {
  const spenders = settings.map((one) => new Spender(one, work));
  await Promise.all(spenders.map(({ ready }) => ready));
  for (const one of spenders) one.go();
  return spenders;
}
