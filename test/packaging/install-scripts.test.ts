import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(__dirname, '../..');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-install-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it.each(['.npmrc', 'console/.npmrc', 'bench/.npmrc'])(
  '%s keeps a dependency from running a script when it is installed',
  (npmrc) => {
    copyFileSync(join(root, npmrc), join(folder, '.npmrc'));
    const write = (path: string, value: object) => writeFileSync(join(folder, path), JSON.stringify(value));
    mkdirSync(join(folder, 'dependency'));
    const postinstall = `node -e "require('node:fs').writeFileSync('../ran', '')"`;
    write('dependency/package.json', { name: 'dependency', version: '1.0.0', scripts: { postinstall } });
    write('package.json', { name: 'small', dependencies: { dependency: 'file:dependency' } });
    // npm passes its own settings to the scripts that it runs, such as this test.
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
    execFileSync('npm', ['install', '--offline', '--loglevel=error'], { cwd: folder, env });
    expect(existsSync(join(folder, 'node_modules/dependency/package.json'))).toBe(true);
    expect(existsSync(join(folder, 'ran'))).toBe(false);
  },
);
