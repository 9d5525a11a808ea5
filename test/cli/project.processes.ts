import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli } from './run-cli.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-project-'));
  await mkdir(join(folder, 'dist'));
});
afterEach(() => rm(folder, { recursive: true }));

const APP = '"postern": { "app": "./dist/app.js" }';
const named = `{ "type": "module", ${APP} }`;

it.each([
  ['is not JSON', '{ "postern": ', '', 'package.json is not JSON: '],
  [
    'names no path',
    '{ "postern": { "app": 7 } }',
    '',
    'postern.app must be a path, such as "./dist/app.module.js"',
  ],
  ['names a file that is not built', named, null, 'it is not there; build the project first (npm run build)'],
  ['names a file that throws', named, 'throw new Error("not today")', 'cannot be loaded: not today'],
  [
    'names a file without a module',
    named,
    'export class App {}',
    'must export one module; it exports no Nest module',
  ],
])('says what is wrong with a project whose package.json %s', async (_, manifest, app, reason) => {
  await writeFile(join(folder, 'package.json'), manifest);
  if (app !== null) await writeFile(join(folder, 'dist/app.js'), app);
  // No command of the gateway, so a module may have it.
  const { code, stdout, stderr } = await runCli(['quotas'], {}, folder);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^error: [^\n]+\n$/);
  expect(stderr).toContain(reason);
});

it('reads no project for a command of the gateway', async () => {
  await writeFile(join(folder, 'package.json'), named);
  expect(await runCli(['completion', 'bash'], {}, folder)).toMatchObject({ code: 0, stderr: '' });
});
