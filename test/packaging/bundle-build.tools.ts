import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(__dirname, '../..');

/** A small checkout with the real bundler, and packages of its own. */
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-bundle-'));
  cpSync(join(ROOT, 'scripts'), join(folder, 'scripts'), { recursive: true });
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(join(ROOT, 'node_modules/rolldown'), join(folder, 'node_modules/rolldown'));
  write('package.json', {
    type: 'module',
    dependencies: { one: '1.0.0', two: '1.0.0', '@a/three': '1.0.0' },
  });
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(path: string, content: string | object): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), typeof content === 'string' ? content : JSON.stringify(content));
}

const run = async (script: string) =>
  (await promisify(execFile)(process.execPath, [script], { cwd: folder })).stdout.trim();
const bundle = () => run('scripts/bundle.mjs');
const gateway = () => run('dist/src/main.js');

describe('npm run build', () => {
  it('bundles what dist/ imports, one copy of each package, each class with its name', async () => {
    write(
      'node_modules/one/index.js',
      'class Same {} exports.Same = Same; exports.isOne = (x) => x instanceof Same;',
    );
    write('node_modules/two/package.json', { type: 'module', exports: { './sub': './lib/sub.js' } });
    write(
      'node_modules/two/lib/sub.js',
      'import { isOne, Same as One } from "one"; export class Same extends One {}; export { isOne };',
    );
    write('node_modules/@a/three/package.json', { type: 'module', exports: './index.js' });
    write(
      'node_modules/@a/three/index.js',
      'export class Same {}; export default await import("missing").catch((e) => e.code);',
    );
    write(
      'dist/src/main.js',
      `import { Same as One } from 'one';
       import { isOne, Same as Two } from 'two/sub';
       import three, { Same as Three } from '@a/three';
       console.log(isOne(new One()), isOne(new Two()), One.name, Two.name, Three.name, three);`,
    );
    const expected = 'true true Same Same Same ERR_MODULE_NOT_FOUND';
    expect(await gateway()).toBe(expected);
    await bundle();
    for (const name of ['one', 'two', '@a']) rmSync(join(folder, 'node_modules', name), { recursive: true });
    expect(await gateway()).toBe(expected);
  });

  it('bundles again when an import is new or the lock has changed', async () => {
    write('node_modules/one/index.js', 'exports.text = "one"');
    write('node_modules/two/index.js', 'exports.text = "two"');
    write('dist/src/main.js', `import { text } from 'one'; console.log(text);`);
    await bundle();
    write('node_modules/one/index.js', 'exports.text = "new one"');
    await bundle();
    expect(await gateway()).toBe('one');
    write('package-lock.json', {});
    await bundle();
    expect(await gateway()).toBe('new one');
    write('dist/src/main.js', `const { text } = await import('two'); console.log(text);`);
    await bundle();
    rmSync(join(folder, 'node_modules/two'), { recursive: true });
    expect(await gateway()).toBe('two');
  });

  it('bundles again after one that was interrupted, also if the lock is the previous one again', async () => {
    write('node_modules/one/index.js', 'exports.text = "one"');
    write('node_modules/two/index.js', 'exports.text = "two"');
    write(
      'dist/src/main.js',
      `import { text } from 'one'; import * as two from 'two'; console.log(text, two.text);`,
    );
    await bundle();
    write('node_modules/one/index.js', 'exports.text = "new one"');
    write('package-lock.json', {});
    // A file cannot take the place of a folder.
    const path = join(folder, 'dist/node_modules/two/index.mjs');
    rmSync(path);
    mkdirSync(path);
    await expect(bundle()).rejects.toThrow('EISDIR');
    rmSync(path, { recursive: true });
    write('node_modules/one/index.js', 'exports.text = "one"');
    rmSync(join(folder, 'package-lock.json'));
    await bundle();
    expect(await gateway()).toBe('one two');
  });

  it.each(['exports.text = () => __dirname', 'export const text = () => new URL(".", import.meta.url)'])(
    'names a package that looks for files beside its own, and what to do: %s',
    async (code) => {
      write('node_modules/one/index.js', 'exports.text = require("two").text');
      write('node_modules/two/package.json', { type: code.startsWith('export ') ? 'module' : 'commonjs' });
      write('node_modules/two/index.js', code);
      write('dist/src/main.js', `import { text } from 'one'; console.log(text());`);
      await expect(bundle()).rejects.toThrow(/two\/index\.js\n.*LEFT_OUT in scripts\/bundle\.mjs \(two\)/);
    },
  );
});
