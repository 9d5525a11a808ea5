import type { Page } from '../database/page.js';
import { type Cell, table } from './table.js';

/** The option that every command has. */
export interface OutputOptions {
  json?: boolean;
}

/** One object for programs, on standard output. */
export function printJson(value: unknown): void {
  console.log(JSON.stringify(value, null, 2));
}

/**
 * Writes to standard output and waits until it is taken, so that a slow reader holds us up rather than fills memory.
 *
 * @returns false when nobody reads any more
 */
export function write(text: string): Promise<boolean> {
  if (text === '') return Promise.resolve(!process.stdout.destroyed);
  return new Promise((taken) => process.stdout.write(text, (error) => taken(!error)));
}

/** A page: as the admin API answers it for programs, as a table for people. */
export function printPage<T>(
  page: Page<T>,
  { json }: OutputOptions,
  head: readonly string[],
  row: (item: T) => readonly Cell[],
): void {
  if (json) {
    printJson(page);
    return;
  }
  console.log(page.data.length === 0 ? 'None.' : table(head, page.data.map(row)));
  if (page.next_cursor !== null) console.log(`\nThere are more: --cursor ${page.next_cursor}`);
}
