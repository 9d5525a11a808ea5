import { Console } from 'node:console';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { Logger } from '@nestjs/common';
import type { Command } from 'commander';
import { run } from '../../src/cli/program.js';
import type { Ran } from './run-cli.js';

/**
 * Runs a command as `runCli` does, but in this process, which spares the seconds of a start. What only a process can
 * show (its end, signals, pipes, a server of its own) is for `runCli`.
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
  const undo = [
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
