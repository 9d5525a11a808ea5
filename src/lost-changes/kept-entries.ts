import { mkdir, open, readdir, readFile, rm, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

/** A file gets entries for so long; then it is as old as its last entry. */
const FILE_MS = 60_000;
const FILE_BYTES = 4 * 1_048_576;
/** Of all files: they are read at once. Above it, the oldest are removed. */
const MOST_BYTES = 64 * 1_048_576;

/** An entry of the audit log that this process has read. */
export interface KeptEntry {
  readonly id: string;
  /** The row as JSON. */
  readonly entry: string;
}

/**
 * Files with the entries of the audit log that one process run has read lately, so that they outlive the process. A line is
 * `v1`, the CRC-32 of the entry, the entry.
 */
export class KeptEntries {
  /** By number: when it got entries (ms of the time that the caller gives). */
  private readonly files = new Map<number, { from: number; until: number; bytes: number }>();
  private last = 0;

  /** @param folder of the process run; it is made with the first entry */
  constructor(
    private readonly folder: string,
    private readonly mostBytes = MOST_BYTES,
  ) {}

  /** Writes entries to the disk. @param now ms since 1970 @throws the system's error: some of them may be written */
  async append(entries: readonly KeptEntry[], now: number): Promise<void> {
    const current = this.files.get(this.last);
    if (current === undefined || now - current.from >= FILE_MS || current.bytes >= FILE_BYTES) {
      await mkdir(this.folder, { recursive: true, mode: 0o700 });
      this.files.set(++this.last, { from: now, until: now, bytes: 0 });
    }
    const lines = Buffer.from(entries.map(({ entry }) => lineOf(entry)).join(''));
    const written = this.files.get(this.last)!;
    written.bytes += lines.length;
    const file = await open(pathOf(this.folder, this.last), 'a', 0o600);
    try {
      await file.appendFile(lines);
      await file.datasync();
    } finally {
      await file.close();
    }
    written.until = now;
  }

  /**
   * Removes files without an entry that was read since, and the oldest ones if all are too large.
   *
   * @param since ms since 1970
   * @returns whether one was removed because they were too large
   * @throws the system's error
   */
  async removeBefore(since: number): Promise<boolean> {
    let bytes = [...this.files.values()].reduce((sum, file) => sum + file.bytes, 0);
    let isTooLarge = false;
    for (const [number, file] of this.files) {
      const isOld = file.until < since;
      if (!isOld && (bytes <= this.mostBytes || number === this.last)) continue;
      await unlink(pathOf(this.folder, number)).catch(unlessGone);
      this.files.delete(number);
      bytes -= file.bytes;
      isTooLarge ||= !isOld;
    }
    return isTooLarge;
  }

  /** Removes all. @throws the system's error */
  async clear(): Promise<void> {
    await removeKept(this.folder);
    this.files.clear();
  }

  /** @throws the system's error */
  async read(): Promise<KeptEntry[]> {
    return this.files.size === 0 ? [] : readKept(this.folder);
  }
}

/**
 * The entries in the folder of a process run, without lines that are torn. None if somebody has removed it, as before a backup
 * is restored: the process must not stop at that.
 *
 * @throws the system's error
 */
export async function readKept(folder: string): Promise<KeptEntry[]> {
  const found: KeptEntry[] = [];
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    unlessGone(error);
    return [];
  });
  for (const name of names.filter((name) => /^\d+\.log$/.test(name)).sort()) {
    const lines = (await readFile(join(folder, name), 'utf8')).split('\n');
    for (const line of lines) {
      const entry = entryOf(line);
      if (entry !== null) found.push({ id: (JSON.parse(entry) as { id: string }).id, entry });
    }
  }
  return found;
}

/** @throws the system's error */
export async function removeKept(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}

function pathOf(folder: string, number: number): string {
  return join(folder, `${String(number).padStart(8, '0')}.log`);
}

function lineOf(entry: string): string {
  return `v1 ${sumOf(entry)} ${entry}\n`;
}

function entryOf(line: string): string | null {
  const [, sum, entry] = /^v1 ([0-9a-f]{8}) (\{.*\})$/.exec(line) ?? [];
  return entry !== undefined && sumOf(entry) === sum ? entry : null;
}

function sumOf(entry: string): string {
  return crc32(entry).toString(16).padStart(8, '0');
}

function unlessGone(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}
