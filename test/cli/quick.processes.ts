import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ADMIN_TOKEN, startTestGateway } from '../support/gateway.js';
import { runCli } from './run-cli.js';

const ROOT = resolve(__dirname, '../..');

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-cli-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** Hooks for modules that write the URL of each one, of both kinds, to a file. */
const LOGGING = `
import { appendFileSync } from 'node:fs';
let file;
export const initialize = (data) => { file = data.file; };
export const load = (url, context, next) => { appendFileSync(file, url + '\\n'); return next(url, context); };`;

/** Names of the packages that a command loads. */
async function loadedBy(args: string[], env: Record<string, string> = {}): Promise<string[]> {
  const list = join(folder, 'list');
  const preload = join(folder, 'preload.mjs');
  await writeFile(join(folder, 'hooks.mjs'), LOGGING);
  await writeFile(list, '');
  await writeFile(
    preload,
    `import { register } from 'node:module';
     register('./hooks.mjs', { parentURL: import.meta.url, data: { file: ${JSON.stringify(list)} } });`,
  );
  const { code, stderr } = await runCli(args, { ...env, NODE_OPTIONS: `--import ${preload}` });
  expect([code, stderr]).toEqual([0, '']);
  const urls = (await readFile(list, 'utf8')).split('\n');
  const packages = urls.flatMap((url) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []);
  return [...new Set(packages)].sort();
}

/** What every command may load: nothing that takes long. */
const LIGHT = [
  'ansi-regex',
  'commander',
  'get-east-asian-width',
  'openapi-fetch',
  'string-width',
  'strip-ansi',
];

it.each([['--help'], ['--version'], ['help'], ['keys --help'], ['keys create --help'], ['completion bash']])(
  '%s loads no service, no schema and no database',
  async (args) => {
    expect(await loadedBy(args.split(' '))).toEqual(LIGHT);
  },
);

it('uses a gateway over HTTP without loading more than a client', async () => {
  const gateway = await startTestGateway();
  const loaded = await loadedBy(['usage'], { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN });
  expect(loaded).toEqual(LIGHT);
});

it('uses the gateway that runs on this machine without loading a service or a database', async () => {
  const gateway = await startTestGateway();
  const env = { DATA_DIR: gateway.dataDir, DATABASE_URL: gateway.database.url };
  const running = await loadedBy(['usage'], { ...env, ADMIN_TOKEN });
  // The settings are checked by a schema.
  expect(running).toEqual([...LIGHT, 'zod']);
  // What is loaded would be seen.
  expect(await loadedBy(['usage'], env)).toEqual(expect.arrayContaining(['typeorm', '@nestjs/core', 'pg']));
});

it('--version prints that of the package', async () => {
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  expect(await runCli(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
});

it('names a command as its reader can type it: in a clone with ./, elsewhere from the PATH', async () => {
  await mkdir(join(folder, 'dist/src/platform'), { recursive: true });
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  const copy = join(folder, 'dist/src/platform/cli-command.js');
  for (const file of ['cli-command.js', 'package-root.js'])
    await copyFile(join(ROOT, 'dist/src/platform', file), join(dirname(copy), file));
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
