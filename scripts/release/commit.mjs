// The commit that a release is made of.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { StepError } from '../prepare.mjs';

export const say = (text) => console.log(text);

export const digestOf = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** Runs a command; what it prints is shown if it fails. */
export function run(cwd, command, ...args) {
  try {
    return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: 'pipe', maxBuffer: 1e8 });
  } catch (error) {
    const said = `${error.stdout ?? ''}${error.stderr ?? ''}`.trim();
    throw new StepError(`${[command, ...args].join(' ')} failed in ${cwd}:\n${said}`, 1);
  }
}

/**
 * @returns its id, and when it was made
 * @throws StepError if files are changed: they would not be part of what is released
 */
export function commitOf(root) {
  const changed = run(root, 'git', 'status', '--porcelain').trim();
  if (changed !== '')
    throw new StepError(`Commit these files first; a release is made of a commit:\n${changed}`, 1);
  const [id, seconds] = run(root, 'git', 'log', '-1', '--format=%H %ct').trim().split(' ');
  return { id, time: new Date(Number(seconds) * 1000) };
}

/** A checkout of the commit in a new folder: nothing that the working folder has besides is in it. */
export function cloneOf(root, { id }, folder) {
  run(root, 'git', 'clone', '--quiet', '--no-hardlinks', root, folder);
  run(folder, 'git', 'checkout', '--quiet', '--detach', id);
  return folder;
}
