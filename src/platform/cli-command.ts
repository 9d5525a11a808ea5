import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from './package-root.js';

/** In a clone the command is a file at its top; the image and an installation have `postern` on the PATH. */
const IN_CLONE = existsSync(join(packageRoot(), 'postern'));

/** A command of the CLI as whoever reads it can type it. @param args such as `keys list` */
export function cliCommand(args: string): string {
  return `${IN_CLONE ? './' : ''}postern ${args}`;
}

/** An argument for a POSIX shell: quoted only if the shell would read it as anything but one word. */
export function shellQuoted(argument: string): string {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}
