import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { CliError } from './cli-error.js';

/**
 * Reads a secret from standard input, or from a prompt that does not echo. Never from an argument: arguments are
 * visible in the shell's history and in the process list.
 *
 * @throws CliError if there is none
 */
export async function readSecret(prompt: string): Promise<string> {
  const given = process.stdin.isTTY ? await ask(`${prompt} (not shown): `, true) : await text(process.stdin);
  // A final line end comes from the editor or the pipe and is not part of the secret.
  const secret = given.replace(/\r?\n$/, '');
  if (secret !== '') return secret;
  throw new CliError(
    'There is no secret on standard input. Pipe it in, or run this command in a terminal to get a prompt.',
  );
}

/**
 * Reads a secret of several lines from standard input.
 *
 * @param what it is, for the message
 * @throws CliError if there is none
 */
export async function readText(what: string): Promise<string> {
  const given = process.stdin.isTTY ? '' : await text(process.stdin);
  if (given.trim() !== '') return given;
  throw new CliError(`${what} is not on standard input. Send it there: add "< <file>" to the command.`);
}

/**
 * Asks before something that cannot be undone, if a person is at the terminal. Scripts have no terminal and are not asked.
 *
 * @throws CliError if the response is not yes
 */
export async function confirm(question: string): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return;
  const response = await ask(`${question} [y/N] `, false);
  if (!/^y(es)?$/i.test(response.trim())) throw new CliError('cancelled, nothing was changed');
}

function ask(prompt: string, isHidden: boolean): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const output = isHidden ? nowhere : process.stderr;
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  if (isHidden) process.stderr.write(prompt);
  else lines.setPrompt(prompt);
  return new Promise<string>((resolve, reject) => {
    lines.once('line', resolve);
    lines.once('SIGINT', () => reject(new CliError('cancelled, nothing was changed')));
    lines.once('close', () => resolve(''));
    if (!isHidden) lines.prompt();
  }).finally(() => {
    lines.close();
    if (isHidden) process.stderr.write('\n');
  });
}
