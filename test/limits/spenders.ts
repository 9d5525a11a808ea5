import { type ChildProcess, fork } from 'node:child_process';
import { resolve } from 'node:path';
import { afterFile } from '../support/after-file.js';
import { patienceVariables } from '../support/patience.js';
import type { LedgerSettings } from './ledger-process.js';
import type { Report, Work } from './spender.js';

/** As the tests are compiled. */
const SPENDER = resolve(__dirname, '../../.test-build/test/limits/spender.js');

const PATIENCE = resolve(__dirname, '../support/patience-preload.mjs');

const running = new Set<ChildProcess>();
/** Those that have done what they were asked to. */
const idle: ChildProcess[] = [];

afterFile(() => {
  for (const child of running) child.kill('SIGKILL');
  idle.length = 0;
  return Promise.resolve();
});

function start(): ChildProcess {
  const child = fork(SPENDER, {
    execArgv: [...process.execArgv, '--import', PATIENCE],
    env: { ...process.env, ...patienceVariables() },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** A process of its own that uses limits. */
export class Spender {
  readonly ready: Promise<void>;
  /** Its report; null if it was killed. */
  readonly done: Promise<Report | null>;
  private readonly child = idle.pop() ?? start();

  constructor(settings: LedgerSettings, work: Work) {
    const { child } = this;
    const ended = new Promise<never>((_, failed) => {
      child.once('exit', (code, signal) =>
        failed(new ProcessEnded(signal, `a process ended: ${code ?? signal}`)),
      );
    });
    this.ready = Promise.race([new Promise<void>((ready) => child.once('message', () => ready())), ended]);
    this.ready.catch(() => {});
    this.done = this.ready
      .then(() => Promise.race([new Promise<Report>((done) => child.once('message', done)), ended]))
      .catch((error: unknown) => {
        if (error instanceof ProcessEnded && error.signal === 'SIGKILL') return null;
        throw error;
      });
    this.done.then((report) => report !== null && idle.push(child)).catch(() => {});
    child.send([settings, work]);
  }

  go(): void {
    this.child.send('go');
  }

  /** As if the machine had died, for this process alone. */
  kill(): void {
    this.child.kill('SIGKILL');
  }
}

class ProcessEnded extends Error {
  constructor(
    readonly signal: NodeJS.Signals | null,
    message: string,
  ) {
    super(message);
  }
}

/** Starts these processes and lets them begin together. */
export async function spend(settings: LedgerSettings[], work: Work): Promise<Spender[]> {
  const spenders = settings.map((one) => new Spender(one, work));
  await Promise.all(spenders.map(({ ready }) => ready));
  for (const one of spenders) one.go();
  return spenders;
}
