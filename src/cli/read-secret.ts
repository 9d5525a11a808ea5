import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { ServiceError } from '../errors/service-error.js';

/**
 * Reads a secret from standard input, or from a prompt that does not echo. Never from an argument: arguments are
 * visible in the shell's history and in the process list.
 *
 * @throws ServiceError invalid if there is none
 */
export async function readSecret(prompt: string): Promise<string> {
  const given = process.stdin.isTTY ? await ask(prompt) : await text(process.stdin);
  // A final line end comes from the editor or the pipe and is not part of the secret.
  const secret = given.replace(/\r?\n$/, '');
  if (secret !== '') return secret;
  throw new ServiceError(
    'invalid',
    'There is no secret on standard input. Pipe it in, or run this command in a terminal to get a prompt.',
  );
}

function ask(prompt: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  process.stderr.write(`${prompt} (not shown): `);
  return new Promise((resolve, reject) => {
    lines.once('line', resolve);
    lines.once('SIGINT', () => reject(new ServiceError('invalid', 'Cancelled.')));
    lines.once('close', () => resolve(''));
  }).finally(() => {
    lines.close();
    process.stderr.write('\n');
  }) as Promise<string>;
}
