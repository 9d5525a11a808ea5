import { createHash } from 'node:crypto';
import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import { join, relative } from 'node:path';

/** Every file below a folder with its mode, owner and a digest of its content; `skip`: relative paths left out. */
export async function fingerprint(folder: string, skip = /^$/): Promise<Record<string, string>> {
  const seen: Record<string, string> = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const name = relative(folder, path);
    if (skip.test(name)) continue;
    const { mode, uid } = await lstat(path);
    let content = '';
    if (entry.isFile())
      content = createHash('sha256')
        .update(await readFile(path))
        .digest('hex');
    else if (entry.isSymbolicLink()) content = await readlink(path);
    seen[name] = `${mode.toString(8)} ${uid} ${content}`;
  }
  return seen;
}

/** Names of the files below a folder that hold any of these texts. */
export async function filesHolding(folder: string, texts: string[]): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const content = await readFile(path);
    if (texts.some((text) => content.includes(text))) found.push(relative(folder, path));
  }
  return found.sort();
}
