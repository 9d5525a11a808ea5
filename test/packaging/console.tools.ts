import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../support/eventually.js';
import { Checkout } from './checkout.js';

/** A gateway that is ready when a file says so, and ends when another does. */
const GATEWAY = `
import { existsSync } from 'node:fs';
console.log('started');
const timer = setInterval(() => {
  if (existsSync('ready') && process.connected) process.send({ ready: true, console: !existsSync('off') }, () => process.disconnect());
  if (existsSync('end')) process.exit(0);
}, 20);
process.on('SIGTERM', () => process.exit(0));
`;
/** A build that writes its priority. */
const BUILD = `
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { getPriority } from 'node:os';
appendFileSync('../console-builds.log', getPriority() + '\\n');
if (existsSync('../console-broken')) { console.error('src/main.tsx: Unexpected token'); process.exit(1); }
while (existsSync('../console-slow')) await new Promise((go) => setTimeout(go, 20));
const folder = process.argv[process.argv.indexOf('--outDir') + 1];
mkdirSync(folder, { recursive: true });
writeFileSync(folder + '/index.html', 'built');
`;

describe('the console', () => {
  let checkout: Checkout;
  beforeEach(() => {
    checkout = new Checkout(GATEWAY);
    checkout.write('openapi.json', '{}');
    checkout.write('src/providers/presets.ts', '');
    checkout.write('src/client/index.ts', '');
    checkout.write('docs/reference/errors.md', '# Errors');
    const own = { name: 'small-console', version: '1.0.0', type: 'module' };
    checkout.write(
      'console/package.json',
      JSON.stringify({ ...own, dependencies: { part: 'file:part' }, scripts: { build: 'node build.js' } }),
    );
    const dependencies = { part: 'file:part' };
    checkout.write('console/part/package.json', '{"name":"part","version":"1.0.0"}');
    const packages = {
      '': { ...own, dependencies },
      part: { name: 'part', version: '1.0.0' },
      'node_modules/part': { resolved: 'part', link: true },
    };
    const lock = { ...own, lockfileVersion: 3, requires: true, packages };
    checkout.write('console/package-lock.json', JSON.stringify(lock));
    checkout.write('console/build.js', BUILD);
  });
  afterEach(() => checkout.remove('.'));

  const at = (path: string) => join(checkout.folder, path);
  const builds = () =>
    existsSync(at('console-builds.log')) ? read('console-builds.log').trim().split('\n') : [];
  const read = (path: string) => readFileSync(at(path), 'utf8');
  const status = () => (existsSync(at('console/.build-status')) ? read('console/.build-status') : '');
  const isBuilt = () => existsSync(at('console/dist/index.html'));

  it('is built by npm start once the gateway is ready, at the lowest priority, and once', async () => {
    const run = checkout.start();
    await run.until('started');
    expect([builds(), existsSync(at('console/.build.log'))]).toEqual([[], false]);
    checkout.write('ready', '');
    await eventually(isBuilt);
    expect(builds()).toEqual(['19']);
    await eventually(() => status() === '');
    checkout.write('end', '');
    expect(await run.ended).toMatchObject({ code: 0, stderr: '' });

    checkout.remove('end');
    const again = checkout.start();
    await again.until('started');
    await eventually(() => existsSync(at('console/.build.log')));
    checkout.write('end', '');
    await again.ended;
    expect(builds()).toHaveLength(1);
  });

  it('keeps the previous build until the new one is complete', async () => {
    checkout.write('ready', '');
    checkout.write('console/dist/index.html', 'previous');
    checkout.write('console-slow', '');
    const run = checkout.start();
    await eventually(() => builds().length === 1);
    expect(status()).toContain('"building"');
    expect(read('console/dist/index.html')).toBe('previous');
    checkout.remove('console-slow');
    await eventually(() => isBuilt() && read('console/dist/index.html') === 'built');
    checkout.write('end', '');
    await run.ended;
  });

  it('that cannot be built is reported in one line, and the gateway runs on', async () => {
    checkout.write('ready', '');
    checkout.write('console-broken', '');
    const run = checkout.start();
    await eventually(() => run.complained().includes('\n'));
    expect(status()).toContain('"failed"');
    expect(read('console/.build.log')).toContain('src/main.tsx: Unexpected token');
    expect(run.child.exitCode).toBeNull();
    checkout.write('end', '');
    expect((await run.ended).stderr).toBe(
      'postern: the console could not be built (exit code 1); see console/.build.log. The gateway is not affected.\n',
    );
  });

  it('is not built longer than the gateway runs', async () => {
    checkout.write('ready', '');
    checkout.write('console-slow', '');
    const run = checkout.start();
    await eventually(() => builds().length === 1);
    const { pid } = JSON.parse(status()) as { pid: number };
    run.child.kill('SIGTERM');
    expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
    await eventually(() => !isAlive(pid));
    expect(isBuilt()).toBe(false);
  });

  it('is not built with CONSOLE=off, which the gateway reports', async () => {
    checkout.write('ready', '');
    checkout.write('off', '');
    const run = checkout.start();
    await run.until('started');
    checkout.write('end', '');
    await run.ended;
    expect(existsSync(at('console/.build.log'))).toBe(false);
  });

  it('is built again by npm run build only when something changed', () => {
    const build = () =>
      spawnSync(process.execPath, ['scripts/console.mjs'], { cwd: checkout.folder, encoding: 'utf8' });
    expect(build().status).toBe(0);
    expect(build().status).toBe(0);
    expect(builds()).toHaveLength(1);
    for (const change of ['console/src/page.tsx', 'openapi.json', 'src/client/client.ts']) {
      checkout.write(change, '{"changed":true}');
      build();
    }
    expect(builds()).toHaveLength(4);
    checkout.write('console-broken', '');
    checkout.write('openapi.json', '{}');
    expect(build()).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('Unexpected token') as string,
    });
    expect(read('console/dist/index.html')).toBe('built');
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
