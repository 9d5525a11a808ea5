// Gateways of the same kind, for `--peers`: installed on demand, once, by the ordinary client of their registry.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../workplace.mjs';

const STEP_MS = 600_000;

/**
 * @param name with its version
 * @param commands run one after the other; they get the folder
 * @returns the folder; null, after printing why, if it cannot be installed here
 */
export async function installPeer(name, commands) {
  const folder = join(root, 'bench/results/peers', name);
  const stamp = join(folder, '.installed');
  if (existsSync(stamp)) return folder;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  process.stderr.write(`installing ${name} ...\n`);
  for (const [program, ...args] of commands(folder)) {
    try {
      await promisify(execFile)(program, args, { cwd: folder, timeout: STEP_MS, maxBuffer: 2 ** 26 });
    } catch (error) {
      const reason = lastLine(error.stderr) ?? error.message.split('\n')[0];
      process.stderr.write(`${name} is left out, it cannot be installed (${program}): ${reason}\n`);
      return null;
    }
  }
  await writeFile(stamp, '');
  return folder;
}

function lastLine(text) {
  return text?.trim().split('\n').at(-1) || null;
}
