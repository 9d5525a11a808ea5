import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../support/eventually.js';
import { Checkout } from './checkout.js';

// Real: the scripts, npm ci, processes and signals. Not real: the compiler, which changes nothing.
describe('npm start', () => {
  /** Started once; each test has a copy of its own. */
  let installed: Checkout;
  let first: Awaited<ReturnType<Checkout['start']>['ended']>;
  let checkout: Checkout;
  const app =
    'console.log("flags " + process.execArgv); console.log("starter " + process.ppid); process.exit(7);';
  beforeAll(async () => {
    installed = new Checkout(app);
    first = await installed.start().ended;
  });
  afterAll(() => installed.remove('.'));
  beforeEach(() => (checkout = new Checkout(app, installed)));
  afterEach(() => checkout.remove('.'));

  const exists = (path: string) => existsSync(join(checkout.folder, path));

  it('installs, builds and runs with the flags, passing on the exit code; the second time it only runs', async () => {
    expect(first).toMatchObject({ code: 7, stderr: '' });
    expect(first.stdout).toMatch(/Installing dependencies as locked[^]*done in[^]*Building[^]*done in/);
    expect(first.stdout).toContain('flags --max-semi-space-size=32,--v8-pool-size=1\n');

    const second = await checkout.start().ended;
    expect(second.code).toBe(7);
    expect(second.stdout).not.toMatch(/Installing|Building/);
    expect(exists('.prepare.lock')).toBe(false);
  });

  it('takes an installation made by hand as it is, and makes a new one when the lock asks for more', async () => {
    checkout.remove('node_modules/.postern-install');
    expect((await checkout.start().ended).stdout).not.toContain('Installing');

    const lock = JSON.parse(readFileSync(join(checkout.folder, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { version?: string }>;
    };
    checkout.write(
      'compiler/package.json',
      '{"name":"@swc/core","version":"1.0.1","type":"module","exports":"./index.js"}',
    );
    lock.packages.compiler = { ...lock.packages.compiler, version: '1.0.1' };
    checkout.write('package-lock.json', JSON.stringify(lock));
    expect((await checkout.start().ended).stdout).toContain('Installing');
  });

  it('installs a tool of the build that an update brought, although it is optional', async () => {
    const manifest = { name: 'tool', version: '1.0.0' };
    checkout.write('tool/package.json', JSON.stringify(manifest));
    for (const file of ['package.json', 'package-lock.json']) {
      const content = JSON.parse(readFileSync(join(checkout.folder, file), 'utf8')) as {
        optionalDependencies?: object;
        packages?: Record<string, object>;
      };
      const optionalDependencies = { tool: 'file:tool' };
      if (content.packages === undefined) content.optionalDependencies = optionalDependencies;
      else {
        Object.assign(content.packages['']!, { optionalDependencies });
        content.packages.tool = { ...manifest, optional: true };
        content.packages['node_modules/tool'] = { resolved: 'tool', link: true, optional: true };
      }
      checkout.write(file, JSON.stringify(content));
    }
    expect((await checkout.start().ended).stdout).toContain('Installing');
    expect(exists('node_modules/tool')).toBe(true);
    expect((await checkout.start().ended).stdout).not.toContain('Installing');
  });

  it('builds again when a source changed, appeared or went, whatever its time stamp', async () => {
    for (const change of [
      () => checkout.write('src/start.ts', `${app} // changed`),
      () => checkout.write('migrations/1-New.ts', ''),
      () => checkout.remove('migrations/1-New.ts'),
      () => checkout.write('.swcrc', '{}'),
    ]) {
      change();
      expect((await checkout.start().ended).stdout).toContain('Building');
      expect((await checkout.start().ended).stdout).not.toContain('Building');
    }
    checkout.write('src/main.spec.ts', '');
    expect((await checkout.start().ended).stdout).not.toContain('Building');
  });

  it('says why a build failed, runs nothing and builds again next time', async () => {
    checkout.remove('dist');
    checkout.write('broken', '');
    const failed = await checkout.start().ended;
    expect(failed.code).toBe(1);
    expect(failed.stderr).toMatch(/src\/main\.ts: Expression expected[^]*Building: failed\./);
    expect(failed.stderr).not.toContain('at ');
    expect(failed.stdout).not.toContain('flags');
    checkout.remove('broken');
    expect((await checkout.start().ended).code).toBe(7);
  });

  it('has the compilers in another process, which ends with the build', async () => {
    checkout.remove('dist');
    const { stdout } = await checkout.start().ended;
    const starter = /^starter (\d+)$/m.exec(stdout)![1];
    expect(checkout.builders.at(-1)).not.toBe(starter);
  });

  it("shows npm's own message when the installation fails", async () => {
    checkout.remove('node_modules');
    checkout.write('package-lock.json', '{"lockfileVersion":3,"packages":{"":{}}}');
    const { code, stderr } = await checkout.start().ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/npm error[^]*Missing: @swc\/core[^]*npm ci\): failed\. npm's message is above/);
  });

  it('started twice at once, installs and builds once', async () => {
    checkout.remove('.');
    checkout = new Checkout(app);
    checkout.write('slow', '500');
    const both = await Promise.all([checkout.start().ended, checkout.start().ended]);
    expect(both.map(({ code }) => code)).toEqual([7, 7]);
    expect(checkout.builds).toBe(1);
    expect(both.filter(({ stdout }) => stdout.includes('Waiting for another start'))).toHaveLength(1);
  });

  it('is not held up by the lock of a start that was killed', async () => {
    checkout.remove('dist');
    const { pid } = spawnSync(process.execPath, ['-e', '']);
    checkout.write('.prepare.lock', `${pid} ${hostname()}\n`);
    const { code, stdout } = await checkout.start().ended;
    expect(code).toBe(7);
    expect(stdout).not.toContain('Waiting for another start');
    expect(exists('.prepare.lock')).toBe(false);
  });

  it('stopped during a build, leaves neither a lock nor a stamp', async () => {
    checkout.remove('dist');
    checkout.write('slow', '60000');
    const run = checkout.start();
    await run.until('Building');
    run.child.kill('SIGTERM');
    expect((await run.ended).code).toBe(143);
    expect(exists('.prepare.lock') || exists('dist/.postern-build')).toBe(false);
  });

  it('stopped while npm installs, says so and blames nothing', async () => {
    checkout.remove('node_modules');
    // In place of npm: as npm does, it ends with 1 on a signal.
    checkout.write(
      'npm-cli.js',
      "process.on('SIGTERM', () => process.exit(1)); process.stderr.write('npm runs'); setInterval(() => {}, 1000);",
    );
    const run = checkout.start('start.mjs', [], { npm_execpath: join(checkout.folder, 'npm-cli.js') });
    await eventually(() => run.complained().includes('npm runs'));
    run.child.kill('SIGTERM');
    const { code, stderr } = await run.ended;
    expect({ code, stderr }).toEqual({
      code: 143,
      stderr: 'npm runsInstalling dependencies as locked (npm ci): stopped.\n',
    });
  });

  it('needs none of its files to say that this Node is too old', () => {
    checkout.write(
      'older.cjs',
      "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.8' } });",
    );
    for (const file of readdirSync(join(checkout.folder, 'scripts')))
      if (!['start.mjs', 'check-node.mjs'].includes(file)) checkout.remove(`scripts/${file}`);
    const args = ['--require', './older.cjs', 'scripts/start.mjs'];
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: checkout.folder, encoding: 'utf8' });
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr:
        'Postern needs Node.js >= 20.19, this is 18.20.8. Install Node.js 24 LTS (at least 20.19) and try again.\n',
    });
  });

  it('--watch: compiles and starts again on a change, and waits where one does not compile', async () => {
    const printing = (text: string) => `console.log('${text}'); setInterval(() => {}, 1000);`;
    checkout.write('src/main.ts', printing('1st'));
    const run = checkout.start('start.mjs', ['--watch']);
    await run.until('1st');
    checkout.write('broken', '');
    // As editors do: a new file in the place of the old one.
    checkout.replace('src/main.ts', printing('2nd'));
    await eventually(() => run.complained().includes('Expression expected'));
    checkout.remove('broken');
    checkout.replace('src/main.ts', printing('3rd'));
    await run.until('3rd');
    checkout.write('src/new/more.ts', '');
    await eventually(() => run.printed().split('3rd').length >= 3);
    expect(run.printed()).not.toContain('2nd');
    run.child.kill('SIGINT');
    expect((await run.ended).code).toBe(130);
  });
});

it('npm start shows the lines for .env that keep the provider of the environment, without its key', async () => {
  const checkout = new Checkout('console.log("started");');
  const given = { PROVIDER_URL: 'https://api.example', PROVIDER_KEY: 'sk-0123456789' };
  const { stdout } = await checkout.start('start.mjs', [], given).ended;
  checkout.remove('.');
  expect(stdout).toMatch(/ {2}PROVIDER_URL=https:\/\/api\.example\n[^]*started/);
  expect(stdout).not.toContain(given.PROVIDER_KEY);
});
