import { randomBytes } from 'node:crypto';
import { link, open, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Names that createOnce() uses on its way; another starter may see them for an instant. */
export const TEMPORARY_NAME = /^\..+\.[0-9a-f]{16}\.tmp$/;

export interface CreateOnceOptions {
  mode?: number;
  /** False skips the fsyncs: for files that mean nothing after a reboot. */
  durable?: boolean;
}

/**
 * Creates `file` with its whole content or not at all; true when this call made it, false when it was there.
 *
 * link(2) is the one call that publishes a complete file *and* fails for an existing name: rename(2) would replace
 * the file of a process that was faster, and O_EXCL on the final name would show it empty until it is written.
 */
export async function createOnce(
  file: string,
  content: string,
  { mode = 0o600, durable = true }: CreateOnceOptions = {},
): Promise<boolean> {
  const folder = dirname(file);
  const temporary = join(folder, `.${basename(file)}.${randomBytes(8).toString('hex')}.tmp`);
  const handle = await open(temporary, 'wx', mode);
  try {
    try {
      await handle.writeFile(content);
      if (durable) await handle.sync();
    } finally {
      await handle.close();
    }
    await link(temporary, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  } finally {
    await rm(temporary, { force: true });
  }
  if (durable) await syncFolder(folder);
  return true;
}

/** A new name survives power loss only once its folder is synced (fsync(2), notes). */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
