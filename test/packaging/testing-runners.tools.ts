import { execFileSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const ROOT = resolve(__dirname, '../..');

const BODY = `
import assert from 'node:assert/strict';
import { Injectable, Module } from '@nestjs/common';
import { FakeProvider, startGateway } from 'postern/testing';

class Own { text() { return 'own'; } }
Injectable()(Own);
class OwnModule {}
Module({ providers: [Own] })(OwnModule);

export async function body() {
  const provider = await FakeProvider.start();
  const postern = await startGateway({
    modules: [OwnModule],
    settings: { providerUrl: provider.url },
    override: (builder) => builder.overrideProvider(Own).useValue({ text: () => 'other' }),
  });
  assert.equal(postern.app.get(Own).text(), 'other');
  const headers = { authorization: 'Bearer ' + postern.key };
  const response = await fetch(postern.url + '/v1/chat/completions', { method: 'POST', headers, body: '{"model":"m"}' });
  assert.equal(response.status, 200);
  const row = await postern.row(response.headers.get('x-gateway-request-id'));
  assert.equal(row.prompt_tokens, 3);
  await postern.stop();
  await provider.stop();
}
`;

/** An application beside an installation of the package: its packages are those of this checkout. */
let folder: string;
let project: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-runners-'));
  project = join(folder, 'project');
  const installed = join(folder, 'node_modules/postern');
  await mkdir(installed, { recursive: true });
  for (const name of ['src', 'migrations'])
    await cp(join(ROOT, 'dist', name), join(installed, 'dist', name), { recursive: true });
  const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as object;
  const exports = { './testing': './dist/src/testing/index.js' };
  await writeFile(join(installed, 'package.json'), JSON.stringify({ ...manifest, exports }));
  for (const name of await readdir(join(ROOT, 'node_modules')))
    await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
  await mkdir(project);
  const write = (name: string, text: string) => writeFile(join(project, name), text);
  await write('package.json', '{"type":"module","private":true}');
  await write('body.mjs', BODY);
  for (const name of ['a', 'b']) {
    await write(`${name}.node.mjs`, `import { it } from 'node:test'; ${IMPORT} it('works', body);`);
    await write(`${name}.jest.mjs`, `${IMPORT} it('works', body, 200_000);`);
    await write(`${name}.vitest.mjs`, `import { it } from 'vitest'; ${IMPORT} it('works', body, 200_000);`);
  }
  await write('jest.config.mjs', "export default { testMatch: ['**/*.jest.mjs'], transform: {} };");
  await write('vitest.config.mjs', "export default { test: { include: ['*.vitest.mjs'] } };");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const IMPORT = "import { body } from './body.mjs';";

/** @throws Error with what was printed if a test failed */
function run(command: string, ...args: string[]): void {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/TEST_|JEST_/.test(name)));
  execFileSync(command, args, { cwd: project, env, stdio: 'pipe' });
}

it('works with node:test', () => run(process.execPath, '--test', 'a.node.mjs', 'b.node.mjs'));

it('works with Jest', () =>
  run(process.execPath, '--experimental-vm-modules', '../node_modules/jest/bin/jest.js', '--runInBand'));

it('works with Vitest', () => {
  run('npm', 'install', '--no-save', '--no-audit', '--no-fund', 'vitest@4.1.12');
  run('npx', 'vitest', 'run');
});
