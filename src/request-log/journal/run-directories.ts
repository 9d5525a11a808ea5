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

/** Journal files of a run, oldest first. */
export async function logFiles(folder: string): Promise<string[]> {
  const numbers = (await readdir(folder)).filter((name) => /^\d+\.log$/.test(name));
  return numbers.sort((a, b) => parseInt(a) - parseInt(b)).map((name) => join(folder, name));
}
