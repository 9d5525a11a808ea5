import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { resolve } from 'node:path';
import { afterFile } from './after-file.js';
import { patienceVariables } from './patience.js';

const ROOT = resolve(__dirname, '../..');
/** Those of production, and what scripts/test.mjs gives to processes that end soon. */
const FLAGS = [
  '--max-semi-space-size=32',
  '--v8-pool-size=1',
  ...process.execArgv.filter((flag) => flag.startsWith('--interrupt-budget=')),
];

const running = new Set<Process>();

afterFile(killAll);
// A worker whose Jest was ended runs nothing after its file.
process.once('exit', () => {
  for (const each of running) each.signal('SIGKILL');
});

/** Kills whatever still runs and waits until it is gone. */
export async function killAll(): Promise<void> {
  await Promise.all([...running].map((process) => process.kill()));
}

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface Account {
  uid: number;
  gid: number;
}

/** A process of its own, with everything it prints. */
export class Process {
  stdout = '';
  stderr = '';
  /** Settles when it is gone and its output is read to the end. */
  readonly ended: Promise<Ended>;
  private readonly child: ChildProcess;
  private readonly watchers = new Set<() => void>();

  constructor(command: string, args: string[], options: SpawnOptions) {
    this.child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
      this.look();
    });
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
      this.look();
    });
    running.add(this);
    this.ended = new Promise((done, failed) => {
      this.child.once('error', failed);
      this.child.once('close', (code, signal) => {
        running.delete(this);
        done({ code, signal });
      });
    });
    this.ended.then(
      () => this.look(),
      () => running.delete(this),
    );
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** Waits for a text on standard output or error; rejects with everything printed when the process ends without. */
  async until(pattern: RegExp): Promise<RegExpExecArray> {
    let gone = false;
    void this.ended.finally(() => (gone = true));
    for (;;) {
      const found = pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
      if (found !== null) return found;
      if (gone) throw new Error(`ended without ${pattern}:\n${this.stdout}${this.stderr}`);
      await new Promise<void>((wake) => this.watchers.add(wake));
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** As if the machine had died, for this process alone. */
  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }

  private look(): void {
    for (const wake of this.watchers) wake();
    this.watchers.clear();
  }
}

/** What a child gets of this process's environment: enough to run, and none of its settings. */
export function bareEnvironment(): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR } = process.env;
  return { PATH, HOME, TMPDIR };
}

/** What to run in place of a program, so that it is as patient as this test, and the variables that this needs. */
export function preloaded(program: string): { file: string; env: Record<string, string> } {
  return {
    file: resolve(__dirname, 'preloaded.mjs'),
    env: { POSTERN_TEST_PROGRAM: program, ...patienceVariables() },
  };
}

interface RunOptions {
  env: Record<string, string>;
  cwd: string;
  account?: Account;
  /** How many descriptors it may have (`ulimit -n`). */
  openFiles?: number;
  /** The checkout with the build; this one unless told otherwise. */
  root?: string;
}

/**
 * Runs a program of the build as it ships: `start` is the gateway.
 *
 * @param options.env POSTERN_TEST_PRELOAD: a file that is loaded before the gateway
 */
export function runBuilt(
  file: 'start' | 'cli/start' | 'main',
  args: string[],
  { env, cwd, account, openFiles, root = ROOT }: RunOptions,
): Process {
  const program = preloaded(resolve(root, 'dist/src', `${file}.js`));
  const command = [process.execPath, ...FLAGS, program.file, ...args];
  const limited = ['sh', '-c', 'ulimit -n "$0" && exec "$@"', String(openFiles), ...command];
  const [executable, ...rest] = openFiles === undefined ? command : limited;
  return new Process(executable!, rest, {
    cwd,
    env: { ...bareEnvironment(), ...program.env, ...env },
    ...account,
  });
}

/** The gateway as an operator starts it, and what it says of itself. */
export class GatewayProcess {
  /** @param cwd a folder without a .env */
  static spawn(
    cwd: string,
    env: Record<string, string>,
    account?: Account,
    openFiles?: number,
  ): GatewayProcess {
    return new GatewayProcess(runBuilt('start', [], { cwd, env: { PORT: '0', ...env }, account, openFiles }));
  }

  /** The gateway of another checkout, such as an older one. */
  static ofCheckout(root: string, cwd: string, env: Record<string, string>): GatewayProcess {
    return new GatewayProcess(runBuilt('main', [], { cwd, env: { PORT: '0', ...env }, root }));
  }

  private constructor(readonly process: Process) {}

  /** Waits until it serves and has reached Postgres. @returns its URL */
  async ready(): Promise<string> {
    return (await this.process.until(/^postern: ready on ([^\s;]+)/m))[1]!;
  }

  /** Waits until it serves, with Postgres or without. @returns its URL */
  async listening(): Promise<string> {
    return (await this.process.until(/^postern: (?:ready|listening) on ([^\s;]+)/m))[1]!;
  }

  /** Waits for the first key, printed once. */
  async firstKey(): Promise<string> {
    return (await this.process.until(/shown only once: (ptn_\S+)$/m))[1]!;
  }

  /** Ends it as a service manager does. */
  async stop(): Promise<Ended> {
    this.process.signal('SIGTERM');
    return this.process.ended;
  }
}
