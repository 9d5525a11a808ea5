import type { Page } from '../database/page.js';
import { type Cell, table } from './table.js';

/** The option of every command. */
export interface OutputOptions {
  json?: boolean;
}

/** Prints one JSON document on standard output. */
export function printJson(value: unknown): void {
  console.log(JSON.stringify(value, null, 2));
}

/**
 * Writes to standard output and waits until the text is flushed, so that a slow reader does not fill memory.
 *
 * @returns false when standard output is closed
 */
export function write(text: string): Promise<boolean> {
  if (text === '') return Promise.resolve(!process.stdout.destroyed);
  return new Promise((taken) => process.stdout.write(text, (error) => taken(!error)));
}

/**
 * Prints a page of a list: as the admin API returns it with `--json`, else as a table.
 *
 * @param noun what is listed, in the plural
 */
export function printPage<T>(
  page: Page<T>,
  noun: string,
  { json }: OutputOptions,
  head: readonly string[],
  row: (item: T) => readonly Cell[],
): void {
  if (json) {
    printJson(page);
    return;
  }
  console.log(page.data.length === 0 ? `No ${noun} found.` : table(head, page.data.map(row)));
  if (page.next_cursor !== null) console.log(`\nMore results: add --cursor ${page.next_cursor}`);
}

/** An ISO 8601 time as `2026-11-22 06:27:13 UTC`. */
export function utcTime(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}

/** A number of seconds in the largest unit that divides it: `1 hour`, `90 seconds`. */
export function duration(seconds: number): string {
  const [unit, length] = UNITS.find(([, length]) => seconds % length === 0)!;
  const count = seconds / length;
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

const UNITS: readonly [unit: string, seconds: number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];
