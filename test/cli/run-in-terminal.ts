import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { preloaded } from '../support/process.js';

const MAIN = resolve(__dirname, '../../dist/src/cli/start.js');

export interface TerminalRun {
  code: number | null;
  /** Everything that a person sees, with the codes of the terminal. */
  screen: string;
}

export interface TerminalOptions {
  env?: Record<string, string>;
  columns?: number;
  /** What the person types, once this text is on the screen. */
  type?: { after: string; text: string };
}

/** Runs the CLI as shipped in a pseudo-terminal (`script` of util-linux). */
export async function runInTerminal(
  args: string[],
  { env = {}, columns = 80, type }: TerminalOptions = {},
): Promise<TerminalRun> {
  const program = preloaded(MAIN);
  const quoted = [process.execPath, program.file, ...args].map((arg) => `'${arg.replaceAll("'", `'\\''`)}'`);
  const child = spawn('script', ['-qec', `stty cols ${columns}; ${quoted.join(' ')}`, '/dev/null'], {
    env: { PATH: process.env.PATH, TERM: 'xterm-256color', SHELL: '/bin/sh', ...program.env, ...env },
    stdio: 'pipe',
  });
  let screen = '';
  let hasTyped = false;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text.replaceAll('\r\n', '\n');
    if (type === undefined || hasTyped || !screen.includes(type.after)) return;
    hasTyped = true;
    child.stdin.write(type.text);
  });
  const code = await new Promise<number | null>((done, fail) => child.on('close', done).on('error', fail));
  return { code, screen };
}

/** Without colours and the other codes of the terminal. */
export function plain(screen: string): string {
  return screen.replace(/\u001b\[[\d;?]*[A-Za-z]/g, '');
}
