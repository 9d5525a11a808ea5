import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';

/** A boot's folder: a UUID, then the number of its worker unless that is 1. `rejected/` lies beside and is left alone. */
const BOOT = /^[0-9a-f]{8}-[0-9a-f-]{27}(?:\.(\d+))?$/;

/** Name of the folder for a new boot. @param id a UUIDv7 */
export function bootFolderName(id: string, worker: number): string {
  return worker === 1 ? id : `${id}.${worker}`;
}

/** A worker's reserve of disk space, one for all its boots: restarts on a full disk must not each take another. */
const RESERVE = /^reserve(?:\.(\d+))?$/;

export function reserveName(worker: number): string {
  return worker === 1 ? 'reserve' : `reserve.${worker}`;
}

/** Reserves of workers whose places no longer exist. */
export async function forsakenReserves(root: string, workers: number): Promise<string[]> {
  const names = await readdir(root);
  return names.filter((name) => Number(RESERVE.exec(name)?.[1]) > workers).map((name) => join(root, name));
}

/**
 * The worker that brings a folder's rows to Postgres when its process is dead: the one that has taken its place, so that
 * nobody ever reads what a living one writes. The first cares for places that no longer exist.
 */
export function heirOf(folder: string, workers: number): number {
  const worker = Number(BOOT.exec(basename(folder))?.[1] ?? 1);
  return worker > workers ? 1 : worker;
}

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
