import { execFileSync } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { check, resolveConfig } from 'prettier';

const ROOT = resolve(__dirname, '../..');
const COPIED = ['.prettierrc.json', 'nest-cli.json', 'package.json', 'src/app.module.ts', 'tsconfig.json'];

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
  for (const file of [app, ...made]) {
    const options = await resolveConfig(file);
    expect([file, await check(await readFile(file, 'utf8'), { ...options, filepath: file })]).toEqual([
      file,
      true,
    ]);
  }
});
