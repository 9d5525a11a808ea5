import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const FOLDER = join(__dirname, '../../dist/node_modules');
const read = (file: string) => readFileSync(join(FOLDER, file), 'utf8');
/** Modules that the product imports: `pg`, `csv-stringify/sync`. */
const entries = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('index.mjs'))
  .map((file) => dirname(file));
const files = new Set(entries.map((name) => join(name, 'index.mjs')));
// Grows: files of the previous bundle stay.
for (const file of files)
  for (const [, path] of read(file).matchAll(/"(\.[^"]*\.mjs)"/g)) files.add(join(dirname(file), path!));
const texts = [...files].map(read);

describe('dist/node_modules', () => {
  it.each(entries)(
    'exports of %s what the package itself exports, classes under their names',
    async (name) => {
      // From here, Node finds the package itself.
      const own = (await import(name)) as object;
      const bundled = (await import(pathToFileURL(join(FOLDER, name, 'index.mjs')).href)) as object;
      expect(described(bundled)).toEqual(described(own));
    },
  );

  it('holds each module once', () => {
    const modules = texts.flatMap((text) => text.match(/^\/\/ node_modules\/.*/gm) ?? []);
    expect(modules.length).toBeGreaterThan(1_500);
    expect(modules.filter((module, at) => modules.indexOf(module) !== at)).toEqual([]);
  });

  it('loads none of its packages from elsewhere', () => {
    const asked = texts.flatMap((text) =>
      [...text.matchAll(/(?:\bfrom |\b(?:import|__require)\()"([^"./][^"]*)"/g)].map(([, name]) => name!),
    );
    expect(asked).toContain('node:http');
    expect(entries.filter((name) => asked.includes(name))).toEqual([]);
  });
});

/** Of a module, and of what CommonJS exports as default. */
function described(module: object, depth = 2): unknown[] {
  return Object.entries(module)
    .filter(([key]) => !['__esModule', 'module.exports'].includes(key))
    .map(([key, value]: [string, unknown]) => [
      key,
      typeof value,
      isClass(value) ? value.name : '',
      depth > 1 && key === 'default' && isObject(value) ? described(value, depth - 1) : [],
    ])
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
}

const isClass = (value: unknown): value is { name: string } =>
  typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value));

const isObject = (value: unknown): value is object => Object(value) === value;
