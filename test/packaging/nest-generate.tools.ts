import { execFileSync, spawnSync } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const ROOT = resolve(__dirname, '../..');
const COPIED = ['.oxfmtrc.json', 'nest-cli.json', 'package.json', 'src/app.module.ts', 'tsconfig.json'];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-generate-'));
  for (const name of COPIED) await cp(join(ROOT, name), join(folder, name));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it('nest generate leaves files that are formatted as the linter wants them', async () => {
  const nest = join(ROOT, 'node_modules/@nestjs/cli/bin/nest.js');
  for (const kind of ['module', 'service', 'controller'])
    execFileSync(process.execPath, [nest, 'generate', kind, 'memos'], { cwd: folder, stdio: 'pipe' });
  const made = (await readdir(join(folder, 'src/memos'))).map((name) => join(folder, 'src/memos', name));
  // No *.spec.ts: it would fail as soon as the service needs a dependency.
  expect(made).toHaveLength(3);
  const app = join(folder, 'src/app.module.ts');
  expect(await readFile(app, 'utf8')).toContain("import { MemosModule } from './memos/memos.module.js';");
  const oxfmt = [join(ROOT, 'node_modules/oxfmt/bin/oxfmt'), '--list-different', app, ...made];
  const { stdout, status } = spawnSync(process.execPath, oxfmt, { cwd: folder, encoding: 'utf8' });
  expect([stdout, status]).toEqual(['', 0]);
});
