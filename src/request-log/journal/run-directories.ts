import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';

/** The directory of a process run: a UUID, then the number of its worker unless that is 1. */
const RUN = /^[0-9a-f]{8}-[0-9a-f-]{27}(?:\.(\d+))?$/;

/** Name of the directory for a new run. @param id a UUIDv7 */
export function runDirectoryName(id: string, worker: number): string {
  return worker === 1 ? id : `${id}.${worker}`;
}

/** The UUID of the process run that a directory belongs to. */
export function runOf(folder: string): string {
  return basename(folder).slice(0, 36);
}

/** A worker's reserve of disk space, one for all its runs: restarts on a full disk must not each take another. */
const RESERVE = /^reserve(?:\.(\d+))?$/;

export function reserveName(worker: number): string {
  return worker === 1 ? 'reserve' : `reserve.${worker}`;
}

/** Reserves of workers whose numbers no longer exist. */
export async function abandonedReserves(root: string, workers: number): Promise<string[]> {
  const names = await readdir(root);
  return names.filter((name) => Number(RESERVE.exec(name)?.[1]) > workers).map((name) => join(root, name));
}

/**
 * The worker that drains the directory of a dead process: the one with the same number, so that nobody reads what a
 * living process writes. Worker 1 drains those of numbers that no longer exist.
 */
export function drainerOf(folder: string, workers: number): number {
  const worker = Number(RUN.exec(basename(folder))?.[1] ?? 1);
  return worker > workers ? 1 : worker;
}

/** Directories of all runs, in the order of their starts: their names are UUIDv7. */
export async function runDirectories(root: string): Promise<string[]> {
  const names = await readdir(root);
  return names
    .filter((name) => RUN.test(name))
    .sort()
    .map((name) => join(root, name));
}

/** Where a run keeps its finished files. Versions without it remove it with the directory of a dead run. */
export function keptFolder(folder: string): string {
  return join(folder, 'kept');
}

/** A finished file: the highest `seq` that acknowledged a row in it, then its number in the run directory. */
const KEPT = /^(\d{1,19})-(\d{1,16})\.log$/;

export function logName(number: number): string {
  return `${String(number).padStart(8, '0')}.log`;
}

export function keptName(seq: bigint, number: number): string {
  return `${String(seq)}-${logName(number)}`;
}

/** A finished file, by the name that `keptName()` gave it. */
export interface NamedFile {
  readonly path: string;
  readonly number: number;
  readonly seq: bigint;
}

/** Finished files that a run has kept, in the order in which it wrote them. @param folder of the run */
export async function keptFiles(folder: string): Promise<NamedFile[]> {
  const names = await readdir(keptFolder(folder)).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  });
  const kept = names.flatMap((name) => {
    const [, seq, number] = KEPT.exec(name) ?? [];
    const path = join(keptFolder(folder), name);
    return seq === undefined ? [] : [{ path, seq: BigInt(seq), number: Number(number) }];
  });
  return kept.sort((a, b) => a.number - b.number);
}

/** Journal files of a run that are not kept ones, oldest first. */
export async function logFiles(folder: string): Promise<string[]> {
  return (await numberedFiles(folder)).map(({ path }) => path);
}

/** The same, each with its number. */
export async function numberedFiles(folder: string): Promise<{ path: string; number: number }[]> {
  const names = (await readdir(folder)).filter((name) => /^\d+\.log$/.test(name));
  const files = names.map((name) => ({ path: join(folder, name), number: parseInt(name) }));
  return files.sort((a, b) => a.number - b.number);
}

/** All files of a run, in the order in which it wrote them. */
export async function allFiles(folder: string): Promise<string[]> {
  const files = [...(await keptFiles(folder)), ...(await numberedFiles(folder))];
  return files.sort((a, b) => a.number - b.number).map(({ path }) => path);
}
