import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Private (0700), and without symbolic links in its path. */
export async function temporaryFolder(): Promise<string> {
  return realpath(await mkdtemp(join(tmpdir(), 'postern-test-')));
}

export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
