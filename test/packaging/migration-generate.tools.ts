import { spawn, spawnSync } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const ROOT = resolve(__dirname, '../..');
const COPIED = [
  '.oxfmtrc.json',
  '.swcrc',
  'migrations',
  'package.json',
  'package-lock.json',
  'scripts',
  'src',
  'tsconfig.json',
];

// It builds the product and makes a Postgres cluster.
jest.setTimeout(600_000);

// A fresh clone: the code and the dependencies, neither a build nor a database.
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-clone-'));
  for (const name of COPIED) await cp(join(ROOT, name), join(folder, name), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const read = (path: string) => readFile(join(folder, path), 'utf8');

function migration(args: string[], server?: string) {
  return new Promise<{ code: number | null; output: string }>((resolve) => {
    const child = spawn(process.execPath, [join(folder, 'scripts/migration.mjs'), ...args], {
      cwd: folder,
      env: { PATH: process.env.PATH, NODE_ENV: 'test', TEST_DATABASE_URL: server ?? '' },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.once('close', (code) => resolve({ code, output }));
  });
}

/** The example, as its page says. */
async function addQuotas(): Promise<void> {
  for (const name of await readdir(join(ROOT, 'test/example/quotas'))) {
    if (/^\d/.test(name)) continue;
    const text = await readFile(join(ROOT, 'test/example/quotas', name), 'utf8');
    await cp(join(ROOT, 'test/example/quotas', name), join(folder, 'src/quotas', name), { recursive: true });
    await writeFile(
      join(folder, 'src/quotas', name),
      text
        .replaceAll('../../../src/', '../')
        // Written here.
        .replace(/^import .*\/\d{13}-.*\n/m, '')
        .replace(/migrations: \[\w+\], /, ''),
    );
  }
  const app = await read('src/app.module.ts');
  await writeFile(
    join(folder, 'src/app.module.ts'),
    `import { QuotasModule } from './quotas/quotas.module.js';\n${app.replace('imports: [', 'imports: [QuotasModule, ')}`,
  );
}

it('on a fresh clone, migration:generate writes the migration of an entity and lists it', async () => {
  await addQuotas();
  // As if made by somebody whose clock is ahead.
  await writeFile(join(folder, 'migrations/2000000000000-later.ts'), 'export {};\n');
  const { code, output } = await migration(['generate', 'AddQuotas']);
  expect([code, output]).toEqual([0, expect.stringContaining('listed in src/database/migrations.ts')]);
  const [file] = (await readdir(join(folder, 'migrations'))).filter((name) => name.endsWith('quotas.ts'));
  expect(file).toMatch(/^\d{13}-add-quotas\.ts$/);
  // Not a second later only, as another one that is written today.
  expect(Number.parseInt(file!)).toBeGreaterThan(2_000_000_001_000);
  const name = `AddQuotas${file!.slice(0, 13)}`;
  const sql = await read(`migrations/${file}`);
  expect(sql).toContain(`class ${name} `);
  expect(sql).toContain('"quota_team_id_fkey" FOREIGN KEY');
  const list = await read('src/database/migrations.ts');
  expect(list).toContain(`import { ${name} } from '../../migrations/${file!.replace(/ts$/, 'js')}';\n`);
  expect(list).toMatch(new RegExp(`  ${name},\n];\n$`));
  const changed = [`migrations/${file}`, 'src/database/migrations.ts'];
  const oxfmt = [join(ROOT, 'node_modules/oxfmt/bin/oxfmt'), '--list-different', ...changed];
  const { stdout, status } = spawnSync(process.execPath, oxfmt, { cwd: folder, encoding: 'utf8' });
  expect([stdout, status]).toEqual(['', 0]);
});

it('then there is nothing left to generate', async () => {
  const { code, output } = await migration(['generate', 'AddNothing'], process.env.POSTERN_TEST_SERVER);
  expect([code, output]).toEqual([1, expect.stringContaining('No changes in database schema were found')]);
  expect((await readdir(join(folder, 'migrations'))).filter((name) => name.includes('nothing'))).toEqual([]);
});

it('where there is no database to migrate, migration:run says so and no more', async () => {
  const { code, output } = await migration(['run']);
  expect(code).toBe(1);
  expect(output.trim()).toMatch(/^error: there is no database in .*; run npm start first, or set .*$/);
});
