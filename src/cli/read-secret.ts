import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { ServiceError } from '../errors/service-error.js';

/**
 * A secret from standard input, or from a prompt that shows nothing of it. Never an argument: those stand in the
 * shell's history and in the list of processes.
 *
 * @throws ServiceError invalid when there is none
 */
export async function readSecret(prompt: string): Promise<string> {
  const given = process.stdin.isTTY ? await ask(prompt) : await text(process.stdin);
  // One line end is the editor's or the pipe's, not the secret's.
  const secret = given.replace(/\r?\n$/, '');
  if (secret !== '') return secret;
  throw new ServiceError(
    'invalid',
    'There is no secret on standard input. Pipe it in, or run this in a terminal to be asked.',
  );
}

function ask(prompt: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  process.stderr.write(`${prompt} (not shown): `);
  return new Promise((resolve, reject) => {
    lines.once('line', resolve);
    lines.once('SIGINT', () => reject(new ServiceError('invalid', 'Given up.')));
    lines.once('close', () => resolve(''));
  }).finally(() => {
    lines.close();
    process.stderr.write('\n');
  }) as Promise<string>;
}
