import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { FolderLock } from '../../../src/platform/folder-lock.js';
import { npmScript } from '../../packaging/npm.js';
import { eventually } from '../../support/eventually.js';

/** Not in the temporary folder of a run: these are hundreds of megabytes. */
const CACHE = resolve(__dirname, '../../../node_modules/.cache/clients');
/** Longer than a slow network takes. */
const INSTALL_MS = 900_000;

export const CLAUDE_CODE = '2.1.332';
export const CODEX = '0.171.0';

/** @returns path of Claude Code, which is a program of its own for each platform; installed by npm the first time */
export async function claudeCode(): Promise<string> {
  const name = `@anthropic-ai/claude-code-${process.platform}-${process.arch}`;
  return join(await installed(name, CLAUDE_CODE), 'claude');
}

/** @returns path of the script of Codex, installed by npm the first time */
export async function codex(): Promise<string> {
  return join(await installed('@openai/codex', CODEX), 'bin/codex.js');
}

async function installed(name: string, version: string): Promise<string> {
  const folder = join(CACHE, `${name.replace(/\W+/g, '-')}-${version}`);
  const found = join(folder, 'node_modules', name);
  if (existsSync(folder)) return found;
  await mkdir(CACHE, { recursive: true });
  const lock = new FolderLock(join(CACHE, 'lock'));
  await eventually(async () => (await lock.take()) === null, INSTALL_MS);
  try {
    if (existsSync(folder)) return found;
    const draft = `${folder}.draft`;
    await rm(draft, { recursive: true, force: true });
    await mkdir(draft);
    await writeFile(join(draft, 'package.json'), '{"private":true}');
    const args = [npmScript('npm-cli.js'), 'install', '--no-audit', '--no-fund', '--ignore-scripts'];
    await promisify(execFile)(process.execPath, [...args, `${name}@${version}`], { cwd: draft });
    await rename(draft, folder);
  } finally {
    lock.release();
  }
  return found;
}
