import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { read, ROOT } from './pages.js';
import { replaceGenerated } from './reference/markdown.js';

/** Compares the generated part of a page of docs/reference, or writes it. */
export function compare(file: string, name: string, text: string): void {
  const path = `docs/reference/${file}`;
  compareFile(path, replaceGenerated(read(path), name, text));
}

export function compareFile(path: string, fresh: string): void {
  if (process.env.POSTERN_WRITE_DOCS) writeFileSync(join(ROOT, path), fresh);
  expect(read(path)).toBe(fresh);
}
