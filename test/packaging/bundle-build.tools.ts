import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(__dirname, '../..');

/** A small checkout with the real bundler, and packages under the names of real ones. */
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-bundle-'));
  cpSync(join(ROOT, 'scripts'), join(folder, 'scripts'), { recursive: true });
  for (const name of ['node_modules', 'dist/src', 'dist/migrations'])
    mkdirSync(join(folder, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules/rolldown'), join(folder, 'node_modules/rolldown'));
  write('package.json', {
    type: 'module',
    dependencies: { pg: '1.0.0', zod: '1.0.0', '@nestjs/core': '1.0.0' },
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
const gateway = () => run('dist/bundled/main.js');
const exists = (path: string) => existsSync(join(folder, path));

describe('npm run build', () => {
  it('bundles what dist/ imports, one copy of each package, each class with its name', async () => {
    write(
      'node_modules/pg/index.js',
      'class Same {} exports.Same = Same; exports.isOne = (x) => x instanceof Same;',
    );
    write('node_modules/zod/package.json', { type: 'module', exports: { './sub': './lib/sub.js' } });
    write(
      'node_modules/zod/lib/sub.js',
      'import { isOne, Same as One } from "pg"; export class Same extends One {}; export { isOne };',
    );
    write('node_modules/@nestjs/core/package.json', { type: 'module', exports: './index.js' });
    write(
      'node_modules/@nestjs/core/index.js',
      `import { createRequire } from 'node:module';
       const require = createRequire(import.meta.url);
       const { isOne } = require('pg');
       export class Same {};
       export { isOne };
       export default await import("missing").catch((e) => e.code);`,
    );
    write('dist/src/own.js', 'export class Same {}');
    write(
      'dist/src/main.js',
      `import { Same as One } from 'pg';
       import { isOne, Same as Two } from 'zod/sub';
       import three, { isOne as isSameOne, Same as Three } from '@nestjs/core';
       import { Same as Own } from './own.js';
       const names = [One, Two, Three, Own].map(({ name }) => name);
       console.log(isOne(new One()), isOne(new Two()), isSameOne(new One()), ...names, three);`,
    );
    await bundle();
    rmSync(join(folder, 'dist/src'), { recursive: true });
    for (const name of ['pg', 'zod', '@nestjs'])
      rmSync(join(folder, 'node_modules', name), { recursive: true });
    expect(await gateway()).toBe('true true true Same Same Same Same ERR_MODULE_NOT_FOUND');
  });

  it('bundles again when a source or the lock has changed', async () => {
    write('node_modules/pg/index.js', 'exports.text = "one"');
    write('dist/src/main.js', `import { text } from 'pg'; console.log(text);`);
    await bundle();
    write('node_modules/pg/index.js', 'exports.text = "new one"');
    await bundle();
    expect(await gateway()).toBe('one');
    write('package-lock.json', {});
    await bundle();
    expect(await gateway()).toBe('new one');
    write('dist/src/main.js', `import { text } from 'pg'; console.log('changed', text);`);
    await bundle();
    expect(await gateway()).toBe('changed new one');
  });

  it('keeps what the previous bundle loads later, and nothing older', async () => {
    const later = () => readdirSync(join(folder, 'dist/bundled')).filter((file) => file.startsWith('later-'));
    const builds: string[][] = [];
    write('dist/src/main.js', `console.log((await import('./later.js')).text);`);
    for (const text of ['first', 'second', 'third']) {
      write('dist/src/later.js', `export const text = '${text}';`);
      await bundle();
      expect(await gateway()).toBe(text);
      builds.push(later());
    }
    expect(builds.map((files) => files.length)).toEqual([1, 2, 2]);
    expect(builds[2]).not.toContain(builds[0]![0]);
  });

  it('bundles again after one that was interrupted, also if the lock is the previous one again', async () => {
    write('node_modules/pg/index.js', 'exports.text = "one"');
    write('dist/src/main.js', `import { text } from 'pg'; console.log(text);`);
    await bundle();
    write('node_modules/pg/index.js', 'exports.text = "new one"');
    write('package-lock.json', {});
    // A file cannot take the place of a folder.
    const path = join(folder, 'dist/bundled/main.js');
    rmSync(path);
    mkdirSync(path);
    await expect(bundle()).rejects.toThrow('EISDIR');
    rmSync(path, { recursive: true });
    write('node_modules/pg/index.js', 'exports.text = "one"');
    rmSync(join(folder, 'package-lock.json'));
    await bundle();
    expect(await gateway()).toBe('one');
  });

  it('makes no bundle, and leaves none, where package.json has a dependency of others', async () => {
    write('dist/src/main.js', 'console.log("one");');
    expect(await bundle()).toBe('');
    write('package.json', { type: 'module', dependencies: { pg: '1.0.0', '@nestjs/throttler': '1.0.0' } });
    expect(await bundle()).toBe(
      'No bundle, because of your dependencies in package.json (@nestjs/throttler): runs from node_modules.',
    );
    expect(exists('dist/bundled')).toBe(false);
    write('package.json', { type: 'module', dependencies: { pg: '1.0.0' } });
    await bundle();
    expect(await gateway()).toBe('one');
  });

  it.each([
    ['exports.text = () => __dirname', 'commonjs'],
    ['export const text = () => new URL(".", import.meta.url)', 'module'],
  ])('names a package that looks for files beside its own, and what to do: %s', async (code, type) => {
    write('node_modules/pg/index.js', 'exports.text = require("inner").text');
    write('node_modules/inner/package.json', { type });
    write('node_modules/inner/index.js', code);
    write('dist/src/main.js', `import { text } from 'pg'; console.log(text());`);
    await expect(bundle()).rejects.toThrow(
      /inner\/index\.js\nAdd the package that imports inner to LEFT_OUT in scripts\/bundle\.mjs/,
    );
  });

  it('names a source that looks for files beside its own', async () => {
    write('dist/src/main.js', 'console.log(import.meta.dirname);');
    await expect(bundle()).rejects.toThrow(/dist\/src\/main\.js\nIn sources, use packageRoot\(\)/);
  });
});
