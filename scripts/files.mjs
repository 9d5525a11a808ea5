// Files below the root of the checkout. Plain Node, like every script of a start.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** In one step: a process that starts at the same time reads the old file or the new one. */
export function write(to, name, content) {
  const path = join(root, to, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.${process.pid}`, content);
  renameSync(`${path}.${process.pid}`, path);
}

export function hash(...texts) {
  return createHash('sha256').update(texts.join('\0')).digest('base64url').slice(0, 22);
}

/** @returns an empty text if the file is not there */
export function read(...parts) {
  try {
    return readFileSync(join(root, ...parts), 'utf8');
  } catch {
    return '';
  }
}
