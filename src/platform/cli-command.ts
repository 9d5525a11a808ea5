import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { packageRoot } from './package-root.js';

const PACKAGE = packageRoot();

/** In a clone the command is a file at its top, and npm runs that of an installed package; the image has it on the PATH. */
const BEFORE = existsSync(join(PACKAGE, 'postern'))
  ? './'
  : basename(dirname(PACKAGE)) === 'node_modules'
    ? 'npx '
    : '';

/** A command of the CLI as whoever reads it can type it. @param args such as `keys list` */
export function cliCommand(args: string): string {
  return `${BEFORE}postern ${args}`;
}

/** An argument for a POSIX shell: quoted only if the shell would read it as anything but one word. */
export function shellQuoted(argument: string): string {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}
