import { execFileSync } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const ROOT = resolve(__dirname, '../..');
const COPIED = [
  '.swcrc',
  'migrations',
  'nest-cli.json',
  'package.json',
  'src',
  'tsconfig.json',
  'tsconfig.build.json',
];

it('nest build copies the functions to where the migrations look for them', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-nest-'));
  for (const name of COPIED) await cp(join(ROOT, name), join(folder, name), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const nest = join(ROOT, 'node_modules/@nestjs/cli/bin/nest.js');
  execFileSync(process.execPath, [nest, 'build'], { cwd: folder, stdio: 'pipe' });
  const files = await readdir(join(ROOT, 'migrations/functions'));
  expect(files.length).toBeGreaterThan(10);
  for (const file of files)
    expect(await readFile(join(folder, 'dist/migrations/functions', file), 'utf8')).toBe(
      await readFile(join(ROOT, 'migrations/functions', file), 'utf8'),
    );
  await rm(folder, { recursive: true });
});
