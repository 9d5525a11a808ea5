import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of package.json above this file, compiled or not. */
export function packageRoot(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  for (let folder = here; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder;
    if (dirname(folder) === folder) throw new Error(`there is no package.json above ${here}`);
  }
}

/** Version of the package. */
export function packageVersion(): string {
  const text = readFileSync(join(packageRoot(), 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/** The text of CHANGELOG.md. @throws ENOENT if the file was left out where this runs */
export function packageChangelog(): string {
  return readFileSync(join(packageRoot(), 'CHANGELOG.md'), 'utf8');
}

/** The commit of the clone that this runs in; null if it is no clone. */
export function packageCommit(): string | null {
  try {
    const root = join(packageRoot(), '.git');
    // In a worktree it is a file that names the folder, whose refs are in a common one.
    const git = statSync(root).isDirectory() ? root : textOf(root).replace(/^gitdir: /, '');
    const common = join(git, 'commondir');
    const refs = existsSync(common) ? resolve(git, textOf(common)) : git;
    const head = textOf(join(git, 'HEAD'));
    const commit = head.startsWith('ref: ') ? commitOf(refs, head.slice('ref: '.length)) : head;
    return commit !== undefined && /^[0-9a-f]{40,64}$/.test(commit) ? commit : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

function commitOf(refs: string, name: string): string | undefined {
  const file = join(refs, name);
  if (existsSync(file)) return textOf(file);
  const packed = textOf(join(refs, 'packed-refs')).split('\n');
  return packed.find((line) => line.endsWith(` ${name}`))?.split(' ')[0];
}

function textOf(path: string): string {
  return readFileSync(path, 'utf8').trim();
}
