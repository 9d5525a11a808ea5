import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { runCli } from './run-cli.js';

const ROOT = resolve(__dirname, '../..');

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-cli-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** Packages among the CommonJS modules that a command had loaded when it ended. */
async function loadedBy(args: string[]): Promise<string[]> {
  const preload = join(folder, 'preload.cjs');
  const list = join(folder, 'list');
  await writeFile(
    preload,
    `process.on('exit', () => require('fs').writeFileSync(${JSON.stringify(list)}, Object.keys(require.cache).join('\\n')));`,
  );
  expect((await runCli(args, { NODE_OPTIONS: `--require ${preload}` })).code).toBe(0);
  const names = [...(await readFile(list, 'utf8')).matchAll(/node_modules\/((?:@[^/]+\/)?[^/]+)/g)];
  return [...new Set(names.map(([, name]) => name!))];
}

it.each([['--help'], ['--version'], ['help']])('%s loads none of the services', async (arg) => {
  expect(await loadedBy([arg])).toEqual(['commander']);
  // They would be seen.
  if (arg === '--help')
    expect(await loadedBy(['keys', '--help'])).toEqual(expect.arrayContaining(['typeorm', 'pg']));
});

it('--version prints that of the package', async () => {
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  expect(await runCli(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
});

it('names a command as its reader can type it: in a clone with ./, elsewhere from the PATH', async () => {
  await mkdir(join(folder, 'dist/src/platform'), { recursive: true });
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  const copy = join(folder, 'dist/src/platform/cli-command.js');
  await copyFile(join(ROOT, 'dist/src/platform/cli-command.js'), copy);
  const load = async (query: string) =>
    (
      (await import(
        `${pathToFileURL(copy).href}?${query}`
      )) as typeof import('../../src/platform/cli-command.js')
    ).cliCommand;
  expect((await load('image'))('keys list')).toBe('postern keys list');
  await copyFile(join(ROOT, 'postern'), join(folder, 'postern'));
  expect((await load('clone'))('keys list')).toBe('./postern keys list');
});
