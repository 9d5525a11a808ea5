import { resolve } from 'node:path';
import { bareEnvironment, Process } from '../support/process.js';

const ROOT = resolve(__dirname, '../..');

/** Builds the console if its sources changed. */
export async function buildConsole(): Promise<void> {
  const build = new Process(process.execPath, ['scripts/console.mjs'], { cwd: ROOT, env: bareEnvironment() });
  const { code } = await build.ended;
  if (code !== 0) throw new Error(`The console was not built:\n${build.stdout}${build.stderr}`);
}
