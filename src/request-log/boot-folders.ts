import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** A boot's folder, named by a UUID; `rejected/` lies beside them and is left alone. */
const BOOT = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

/** Folders of all boots of a journal, in the order of their starts: their names are UUIDv7. */
export async function bootFolders(root: string): Promise<string[]> {
  const names = await readdir(root);
  return names
    .filter((name) => BOOT.test(name))
    .sort()
    .map((name) => join(root, name));
}

/** Journal files of a boot's folder, oldest first. */
export async function logFiles(folder: string): Promise<string[]> {
  const numbers = (await readdir(folder)).filter((name) => /^\d+\.log$/.test(name));
  return numbers.sort((a, b) => parseInt(a) - parseInt(b)).map((name) => join(folder, name));
}
