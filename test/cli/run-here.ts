import { Console } from 'node:console';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { Logger } from '@nestjs/common';
import type { Command } from 'commander';
import type { Target } from '../../src/cli/api.js';
import { local } from '../../src/cli/connect.js';
import { run } from '../../src/cli/program.js';
import { afterFile } from '../support/after-file.js';
import type { Ran } from './run-cli.js';

/**
 * Runs a command as `runCli` does, but in this process, which spares the seconds of a start. What only a process can
 * show (its end, signals, pipes, a server of its own) is for `runCli`.
 *
 * Without a gateway, the commands of a file use one application of the admin API, which is what costs most of them. A
 * command has its own if it could depend on more than the database and the master key: with a `cwd`, or other variables.
 *
 * The environment, the folder and the output belong to the whole process: a command waits for the one before.
 *
 * @param commands of a module under test, beside those of the gateway
 */
export function runHere(
  args: string[],
  env: Record<string, string> = {},
  cwd?: string,
  input = '',
  commands: readonly (() => Command)[] = [],
): Promise<Ran> {
  const ran = last.then(() => runAlone(args, env, cwd, input, commands));
  last = ran.catch(() => undefined);
  return ran;
}

let last: Promise<unknown> = Promise.resolve();

/** The application for the last environment that had one. */
let kept: { api: Target; key: string } | undefined;

async function closeKept(): Promise<void> {
  const closing = kept?.api.close();
  kept = undefined;
  await closing;
}
afterFile(closeKept);

/** @param open opens the application of this environment */
async function keep(
  { DATABASE_URL, MASTER_KEY }: Record<string, string>,
  open: typeof local.open,
): Promise<Target> {
  const key = JSON.stringify([DATABASE_URL, MASTER_KEY]);
  if (kept?.key !== key) {
    await closeKept();
    kept = { api: await open(), key };
  }
  return { ...kept.api, close: () => Promise.resolve() };
}

/** Whether the application depends on nothing but these values: no folder, no file, no other database. */
function isPlain({ DATABASE_URL, MASTER_KEY: _, ...others }: Record<string, string>): boolean {
  return DATABASE_URL !== undefined && Object.keys(others).length === 0;
}

async function runAlone(
  args: string[],
  env: Record<string, string>,
  cwd: string | undefined,
  input: string,
  commands: readonly (() => Command)[],
): Promise<Ran> {
  const folder = cwd ?? (await mkdtemp(join(tmpdir(), 'postern-cli-')));
  const ran: Ran = { code: null, stdout: '', stderr: '' };
  // What is said after the exit of a process is said by nobody.
  const stdout = sink((text) => ran.code === null && (ran.stdout += text));
  const stderr = sink((text) => ran.code === null && (ran.stderr += text));
  const codeBefore = process.exitCode;
  const exit = (code?: number) => {
    ran.code ??= code ?? Number(process.exitCode ?? 0);
    throw new Error('This process has ended.');
  };
  const home = process.cwd();
  // Commands run without Nest's logger, which they turn off for everything that shares it.
  const logger = Logger['staticInstanceRef'];
  const { open } = local;
  const undo = [
    replace(local, 'open', cwd === undefined && isPlain(env) ? () => keep(env, open) : open),
    replace(process, 'env', { PATH: process.env.PATH, ...env }),
    replace(process, 'stdin', Readable.from([Buffer.from(input)])),
    replace(process, 'stdout', stdout),
    replace(process, 'stderr', stderr),
    () => (process.exitCode = codeBefore),
    replace(process, 'exit', exit),
    // Jest's own would add where it was called from.
    replace(globalThis, 'console', new Console(stdout, stderr)),
  ];
  process.exitCode = undefined;
  process.chdir(folder);
  try {
    await run(args, commands);
    ran.code ??= Number(process.exitCode ?? 0);
  } finally {
    process.chdir(home);
    for (const restore of undo) restore();
    if (logger !== undefined) Logger.overrideLogger(logger);
  }
  if (cwd === undefined) await rm(folder, { recursive: true });
  return ran;
}

/** A stream that hands on each text as it is written. */
function sink(take: (text: string) => void): Writable {
  return new Writable({
    decodeStrings: false,
    write: (chunk: string | Buffer, _encoding, done) => {
      take(chunk.toString());
      done();
    },
  });
}

/** Puts a value in the place of a property, getter or not. @returns what puts back the one before */
function replace(target: object, name: string, value: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(target, name)!;
  Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: true });
  return () => Object.defineProperty(target, name, before);
}
