import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/**
 * A script of npm: of the npm that runs the tests, else of the one that came with this Node.
 *
 * @throws Error if there is none
 */
export function npmScript(name: 'npm-cli.js' | 'npx-cli.js'): string {
  const running = process.env.npm_execpath ?? '';
  const bundled = join(dirname(process.execPath), '../lib/node_modules/npm/bin', name);
  const found = basename(running) === 'npm-cli.js' ? join(dirname(running), name) : bundled;
  if (!existsSync(found)) throw new Error(`npm was not found: ${found}`);
  return found;
}
