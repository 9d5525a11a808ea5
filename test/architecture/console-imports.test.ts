import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { cyclesOf } from './import-cycles.js';

const src = join(__dirname, '../../console/src');
/** Made from openapi.json; it imports nothing, and is not there before the first build. */
const GENERATED = /^api\/query-values(\.ts)?$/;
const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => /\.tsx?$/.test(path) && !GENERATED.test(path))
  .sort();
const imports = new Map(files.map((file) => [file, importsOf(file)]));

/** The modules of the console that a file imports: static, dynamic and type-only, relative to console/src. */
function importsOf(file: string): string[] {
  const found = readFileSync(join(src, file), 'utf8').matchAll(
    /(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]+)['"]/g,
  );
  return [...found]
    .map(([, path]) => posix.join(posix.dirname(file), path!))
    .filter((path) => !path.startsWith('../') && !path.endsWith('.css') && !GENERATED.test(path))
    .map((path) => [`${path}.ts`, `${path}.tsx`].find((name) => existsSync(join(src, name))) ?? path);
}

describe('the source of the console', () => {
  it('is read: files and imports were found, and every import resolves to a file', () => {
    expect(files.length).toBeGreaterThan(20);
    const arrows = [...imports].flatMap(([from, targets]) => targets.map((to) => ({ from, to })));
    expect(arrows.length).toBeGreaterThan(100);
    expect(arrows.filter(({ to }) => !imports.has(to))).toEqual([]);
  });

  it('has no import cycle between files, type-only imports included', () => {
    expect(cyclesOf(imports)).toEqual([]);
  });
});
