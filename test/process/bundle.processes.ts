import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { runBuilt } from '../support/process.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { Workplace } from '../support/workplace.js';

const ROOT = resolve(__dirname, '../..');

let database: TestDatabase;
let workplace: Workplace;
let provider: RawProvider;
beforeAll(async () => {
  database = await createDatabase();
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', ['Content-Type: application/json'], '{"choices":[]}'));
  });
});
afterAll(async () => {
  await provider.stop();
  await database.drop();
});
beforeEach(async () => {
  workplace = await Workplace.make();
});
afterEach(() => workplace.remove());

const settings = () => ({
  DATABASE_URL: database.url,
  PROVIDER_URL: provider.url,
  PROVIDER_KEY: 'sk-0123456789',
});

/** Which files Node loads, it says itself in the folder of NODE_V8_COVERAGE: nothing has to be loaded to see it. */
const coverage = () => join(workplace.folder, 'coverage');

/** Files that a process has loaded, below the checkout. */
async function loaded(): Promise<string[]> {
  const reports = await readdir(coverage());
  const texts = await Promise.all(reports.map((file) => readFile(join(coverage(), file), 'utf8')));
  return texts
    .flatMap((text) => (JSON.parse(text) as { result: { url: string }[] }).result)
    .filter(({ url }) => url.startsWith('file:'))
    .map(({ url }) => relative(ROOT, new URL(url).pathname));
}

async function write(name: string, text: string): Promise<string> {
  const path = join(workplace.folder, name);
  await mkdir(resolve(path, '..'), { recursive: true });
  await writeFile(path, text);
  return path;
}

/** Starts a gateway, makes one call through it and stops it. @returns what it printed */
async function callOnce(env: Record<string, string> = {}): Promise<string> {
  const fresh = await createDatabase();
  try {
    const gateway = workplace.gateway({ ...settings(), DATABASE_URL: fresh.url, ...env });
    const [url, key] = await Promise.all([gateway.ready(), gateway.firstKey()]);
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: '{"model":"gpt-4o-mini","messages":[]}',
    });
    expect([response.status, await response.text()]).toEqual([200, '{"choices":[]}']);
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
    return gateway.process.stdout + gateway.process.stderr;
  } finally {
    await fresh.drop();
  }
}

it('serves calls from the bundle, without a file of a package that it holds', async () => {
  await callOnce({ NODE_V8_COVERAGE: coverage() });
  const files = await loaded();
  expect(files).toContain('dist/bundled/main.js');
  const others = files.filter((file) => !file.startsWith('dist/bundled/'));
  expect(others.filter((file) => file.startsWith('dist/')).sort()).toEqual([
    'dist/src/config/env-source.js',
    'dist/src/config/program.js',
    'dist/src/platform/package-root.js',
    'dist/src/start.js',
  ]);
  expect(others.filter((file) => /node_modules\/(@nestjs|typeorm|pg|zod|rxjs|express)\//.test(file))).toEqual(
    [],
  );
});

describe('code of others never meets the bundle:', () => {
  const HELLO = 'process.env.PRELOADED = "1";';
  const flags: [string, (preload: string) => Record<string, string>][] = [
    ['NODE_OPTIONS=--import', (preload) => ({ NODE_OPTIONS: `--import=${preload}` })],
    ['NODE_OPTIONS=--require', (preload) => ({ NODE_OPTIONS: `--no-warnings --require ${preload}` })],
    ['NODE_OPTIONS=-r', (preload) => ({ NODE_OPTIONS: `-r ${preload}` })],
    ['MODULES', () => ({ MODULES: './modules/hello.js' })],
  ];
  it.each(flags)('with %s, compiled files run with node_modules', async (_, env) => {
    const preload = await write('preload.cjs', HELLO);
    expect(await programOfCli(env(preload))).toBe('dist/src/cli/main.js');
  });

  it('with MODULES in .env too; empty, it is not set', async () => {
    await write('.env', 'MODULES=./modules/hello.js\n');
    expect(await programOfCli({})).toBe('dist/src/cli/main.js');
    await write('.env', 'MODULES=\n');
    expect(await programOfCli({ MODULES: '' })).toBe('dist/bundled/cli.js');
  });

  it('other flags leave it on', async () => {
    expect(await programOfCli({ NODE_OPTIONS: '--max-old-space-size=500' })).toBe('dist/bundled/cli.js');
  });

  async function programOfCli(env: Record<string, string>): Promise<string | undefined> {
    const command = { cwd: workplace.folder, env: { ...env, NODE_V8_COVERAGE: coverage() } };
    expect(await runBuilt('cli/start', ['--version'], command).ended).toEqual({ code: 0, signal: null });
    const files = await loaded();
    await Promise.all((await readdir(coverage())).map((file) => write(`coverage/${file}`, '{"result":[]}')));
    return files.find((file) => /^dist\/(bundled\/cli|src\/cli\/main)\.js$/.test(file));
  }
});

it('a CommonJS package that requires Nest gets the Nest of the gateway', async () => {
  const preload = await write(
    'preload.cjs',
    `const { createRequire } = require('node:module');
     const { Logger } = createRequire(${JSON.stringify(join(ROOT, 'package.json'))})('@nestjs/common');
     const { overrideLogger } = Logger;
     Logger.overrideLogger = function (logger) {
       process.stderr.write('the same Nest\\n');
       return overrideLogger.call(this, logger);
     };`,
  );
  expect(await callOnce({ NODE_OPTIONS: `--require ${preload}` })).toContain('the same Nest\n');
});

/** As import-in-the-middle does: what is instrumented, and in which version, is seen in the URL and beside it. */
const HOOKS = `
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
export async function load(url, context, next) {
  const loaded = await next(url, context);
  const [folder, name] = /^file:.*\\/node_modules\\/(pg|express)\\/(?=lib\\/index\\.js$|esm\\/index\\.mjs$|index\\.js$)/.exec(url) ?? [];
  if (folder !== undefined) {
    const { version } = JSON.parse(readFileSync(fileURLToPath(new URL('package.json', folder)), 'utf8'));
    process._rawDebug('instrumented ' + name + ' ' + version);
  }
  return loaded;
}`;

it('hooks for imports see the packages that serve, with their versions', async () => {
  await write('hooks.mjs', HOOKS);
  const preload = await write(
    'preload.mjs',
    `import { register } from 'node:module'; register('./hooks.mjs', import.meta.url);`,
  );
  const printed = await callOnce({ NODE_OPTIONS: `--import ${preload}` });
  for (const name of ['pg', 'express']) {
    const manifest = await readFile(join(ROOT, 'node_modules', name, 'package.json'), 'utf8');
    expect(printed).toContain(
      `instrumented ${name} ${(JSON.parse(manifest) as { version: string }).version}\n`,
    );
  }
});
