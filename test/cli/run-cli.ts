import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { preloaded } from '../support/process.js';

const MAIN = resolve(__dirname, '../../dist/src/cli/start.js');

export interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

/**
 * Runs the CLI as shipped (dist/, which npm test builds) in a process of its own, in a new empty folder unless `cwd` is
 * given, with this environment and nothing else.
 *
 * @param input what it reads on standard input
 * @param main of another build
 */
export async function runCli(
  args: string[],
  env: Record<string, string> = {},
  cwd?: string,
  input = '',
  main = MAIN,
): Promise<Ran> {
  const folder = cwd ?? (await mkdtemp(join(tmpdir(), 'postern-cli-')));
  const program = preloaded(main);
  const child = spawn(process.execPath, [program.file, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, ...program.env, ...env },
    stdio: 'pipe',
  });
  // A command that does not read may be gone by now.
  child.stdin.on('error', () => {}).end(input);
  const ran: Ran = { code: null, stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (ran.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (ran.stderr += text));
  ran.code = await new Promise((done, fail) => child.on('close', done).on('error', fail));
  if (cwd === undefined) await rm(folder, { recursive: true });
  return ran;
}
