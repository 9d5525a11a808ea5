import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { eventually } from '../support/eventually.js';
import { isAlive } from '../support/workplace.js';
import { Checkout } from './checkout.js';

const ROOT = resolve(__dirname, '../..');
/** Makes a body fail in the first run of its file only. */
const ONCE = `import { existsSync, writeFileSync } from 'node:fs';
const once = (fail) => {
  const seen = new URL('file://' + process.cwd() + '/test/' + import.meta.url.split('/').at(-1) + '.seen');
  if (existsSync(seen)) return;
  writeFileSync(seen, '');
  fail();
};
`;
const NEVER = `import { never } from './support/never.js';\n`;

/** Real: Jest, with everything of test/support. Not real: the tests. */
describe('npm test', () => {
  let checkout: Checkout;
  beforeAll(() => {
    checkout = new Checkout('');
    for (const name of [
      'src',
      'migrations',
      'test/support',
      '.test-build',
      'dist',
      '.swcrc',
      'jest.config.js',
    ])
      cpSync(join(ROOT, name), join(checkout.folder, name), { recursive: true, force: true });
    checkout.remove('node_modules');
    symlinkSync(join(ROOT, 'node_modules'), join(checkout.folder, 'node_modules'));
    for (const name of ['package.json', 'package-lock.json'])
      cpSync(join(ROOT, name), join(checkout.folder, name));
  });
  afterEach(() => {
    for (const name of readdirSync(join(checkout.folder, 'test')))
      if (name !== 'support') checkout.remove(join('test', name));
  });
  afterAll(() => checkout.remove('.'));

  const run = (args: string[] = [], env = {}) =>
    checkout.start('test.mjs', args, { POSTERN_TEST_ONCE: '', ...env });
  const testFile = (name: string, text: string) => checkout.write(`test/${name}.test.ts`, text);

  it('tries a failed file once more, alone, and names what passed only then', async () => {
    testFile('late', `${ONCE}it('is late', () => once(() => { throw new Error('too late\\nby far'); }));`);
    testFile(
      'unavailable',
      `${ONCE}${NEVER}never('adds up', () => once(() => expect([200, { status: 503 }]).toEqual([200])));`,
    );
    testFile('passes', `it('passes', () => {});`);
    const { code, stdout, stderr } = await run().ended;
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('No second try')]);
    expect(stdout).toContain('FLAKY test/late.test.ts › is late: Error: too late\n');
    expect(stdout).toContain('FLAKY test/unavailable.test.ts › adds up: Error: expect(received)');
    expect(stdout).toMatch(/\n2 files are flaky\.[^\n]*\n$/);
    expect(stdout).not.toContain('Once more, alone: test/passes');
  });

  it('names what it leaves out, and runs a path in whatever tier it is', async () => {
    testFile('here', `it('runs here', () => {});`);
    checkout.write('test/apart.processes.ts', `it('runs apart', () => {});`);
    const whole = await run().ended;
    expect(whole).toMatchObject({ code: 0, stderr: expect.stringContaining('test/here.test.ts') as string });
    expect(whole.stderr).not.toContain('test/apart');
    expect(whole.stdout).toMatch(
      /^0 files are flaky\. Left out: 1 files that start processes \(npm run test:processes\), .*\n$/m,
    );
    for (const args of [['test/apart'], ['--tier', 'processes']]) {
      const { code, stderr } = await run(args).ended;
      expect([code, stderr]).toEqual([0, expect.stringContaining('test/apart.processes.ts')]);
      expect(stderr).not.toContain('test/here');
    }
  });

  it('fails if a file fails twice', async () => {
    testFile('broken', `it('is broken', () => expect(1).toBe(2));`);
    testFile('late', `${ONCE}it('is late', () => once(() => { throw new Error('too late'); }));`);
    const { code, stdout } = await run().ended;
    expect(code).toBe(1);
    expect(stdout).toContain('FLAKY test/late.test.ts');
    expect(stdout).not.toContain('FLAKY test/broken.test.ts');
  });

  it('fails if the Postgres of the tests did not end well, whatever a second try would say', async () => {
    testFile(
      'late',
      `${ONCE}import { readFileSync } from 'node:fs';
      const commandOf = (pid) => readFileSync('/proc/' + pid + '/cmdline', 'utf8');
      const besides = readFileSync('/proc/' + process.ppid + '/task/' + process.ppid + '/children', 'utf8').trim().split(' ');
      it('is late', () => once(() => {
        process.kill(besides.find((pid) => commandOf(pid).includes('keeper.mjs')), 'SIGKILL');
        throw new Error('too late');
      }));`,
    );
    const { code, stdout, stderr } = await run().ended;
    expect([code, stderr]).toEqual([1, expect.stringContaining('did not end well')]);
    expect(stdout).not.toContain('FLAKY');
  });

  it('has no second try for what must never happen, nor for more than three files', async () => {
    testFile('sums', `${ONCE}${NEVER}never('adds up', () => once(() => expect(1).toBe(2)));`);
    const never = await run().ended;
    expect(never).toMatchObject({ code: 1, stdout: expect.not.stringContaining('Once more') as string });
    expect(never.stderr).toContain('No second try: test/sums.test.ts › adds up must never fail.');

    for (const name of ['a', 'b', 'c', 'd'])
      testFile(name, `${ONCE}it('fails', () => once(() => expect(1).toBe(2)));`);
    const many = await run().ended;
    expect(many).toMatchObject({ code: 1, stdout: expect.not.stringContaining('Once more') as string });
    expect(many.stderr).toContain('No second try: 4 files failed');
  });

  it('tells of a worker that ended, with what its file had found', async () => {
    const ends = `it('ends', () => once(() => process.exit(1)));`;
    testFile('ends', ONCE + ends);
    const late = await run().ended;
    expect([late.code, late.stdout]).toEqual([
      0,
      expect.stringContaining('FLAKY test/ends.test.ts › the file'),
    ]);
    testFile('sums', `${NEVER}never('adds up', () => expect(1).toBe(2));\n${ONCE}${ends}`);
    const { code, stderr } = await run().ended;
    expect([code, stderr]).toEqual([1, expect.stringContaining('sums.test.ts › adds up must never fail.')]);
  });

  it('fails while an entry of flaky.md is old, by the date of the newest commit', async () => {
    testFile('passes', `it('passes', () => {});`);
    const table = '| file | test | first message | added |\n| --- | --- | --- | --- |\n';
    const rows = ['| `test/a.test.ts` | a | b | 2020-01-01 |', '| `test/b.test.ts` | a | b | 2019-12-31 |'];
    checkout.write('test/flaky.md', `${table}${rows.join('\n')}\n`);
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
        cwd: checkout.folder,
        env: { ...process.env, GIT_COMMITTER_DATE: '2020-01-15T12:00:00Z' },
      });
    git('init', '-q');
    git('commit', '-q', '--allow-empty', '-m', 'first');
    const { code, stderr } = await run().ended;
    expect([code, stderr.match(/^test\/flaky\.md: .*$/gm)]).toEqual([
      1,
      [expect.stringContaining('test/b.test.ts is dated 2019-12-31')],
    ]);
  });

  it('tells each file only of its own tests', async () => {
    for (const name of ['a', 'b', 'c'])
      testFile(
        name,
        `it('counts', () => console.log('handlers:', globalThis[Symbol.for('EVENT_HANDLERS')].length));`,
      );
    const { stdout, stderr } = await run(['--maxWorkers=1']).ended;
    const counts = [...`${stdout}${stderr}`.matchAll(/handlers: (\d+)/g)].map(([, count]) => count);
    expect(counts).toHaveLength(3);
    expect(new Set(counts).size).toBe(1);
  });

  it('leaves no process and no folder when Jest is ended', async () => {
    testFile(
      'waits',
      `import { writeFileSync } from 'node:fs';
      it('waits', async () => {
        writeFileSync('test/waiting', '');
        await new Promise(() => setInterval(() => {}, 1000));
      });`,
    );
    const started = run([], { TEST_DATABASE_URL: '' });
    await eventually(() => existsSync(join(checkout.folder, 'test/waiting')));
    const jest = childrenOf(started.child.pid!)[0]!;
    const processes = descendantsOf(jest);
    // Jest's worker, and the keeper with its Postgres.
    expect(processes.length).toBeGreaterThan(3);
    process.kill(jest, 'SIGKILL');
    await eventually(() => !processes.some(isAlive));
    expect(memoryFolders(processes)).toEqual([]);
  });
});

/** Those that these processes made. */
function memoryFolders(processes: number[]): string[] {
  return readdirSync('/dev/shm').filter((name) =>
    processes.some((pid) => name.startsWith(`postern-test-${pid}-`)),
  );
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.trim().split(' ').filter(Boolean).map(Number);
}

function descendantsOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}
