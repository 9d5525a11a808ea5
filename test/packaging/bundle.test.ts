import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(__dirname, '../..');
const FOLDER = join(ROOT, 'dist/bundled');
const { packagesOfOthers } = (await import(join(ROOT, 'scripts/bundle.mjs'))) as {
  packagesOfOthers: () => string[];
};
const STATIC = /^(?:import|export)\b.*?"\.\/([^"]+)";$/gm;
const ASKED = /^import "([^"./][^"]*)"|(?:\bfrom |\b(?:import|(?:__)?require(?:\$\d+)?)\()"([^"./][^"]*)"/gm;
const ANY = /"\.\/([\w.-]+\.js)"/g;

/** Texts of the files that one file loads, and of all that these do. */
function reachable(file: string, imports: RegExp): string[] {
  const files = new Set([file]);
  for (const one of files) for (const [, name] of read(one).matchAll(imports)) files.add(name!);
  return [...files].map(read);
}

const read = (file: string) => readFileSync(join(FOLDER, file), 'utf8');

/** Modules that a text is made of: a comment above each names its file. */
const modulesOf = (texts: string[]) =>
  texts.flatMap((text) => text.match(/^\/\/ (?:node_modules|dist)\/.*/gm) ?? []).map((line) => line.slice(3));

const packageOf = (path: string) => /^(?:.*node_modules\/)?((?:@[^/]+\/)?[^/]+)/.exec(path)![1]!;

it('is there, unless package.json has dependencies of others', () => {
  expect(existsSync(join(FOLDER, 'main.js'))).toBe(packagesOfOthers().length === 0);
});

(packagesOfOthers().length === 0 ? describe : describe.skip)('dist/bundled', () => {
  const all = () => [
    ...new Set(['main.js', 'cli.js', 'catalog-worker.js'].flatMap((file) => reachable(file, ANY))),
  ];

  it('holds each module once', () => {
    const modules = modulesOf(all());
    expect(modules.length).toBeGreaterThan(2_000);
    expect(modules.filter((module, at) => modules.indexOf(module) !== at)).toEqual([]);
  });

  it('holds the driver of Postgres only, one language of messages, and one table of media types', () => {
    const modules = modulesOf(all());
    const of = (pattern: RegExp) => modules.filter((module) => pattern.test(module));
    expect(of(/typeorm\/driver\/postgres\/PostgresDriver\.js$/)).toHaveLength(1);
    const held = all()
      .join('\n')
      .match(/\bclass (?:Mysql|Oracle|Sap|SqlServer|Cockroach|Mongo)Driver\b/g);
    expect(held).toBeNull();
    expect(of(/zod\/v4\/locales\//).filter((module) => !/\/(?:en|index)\.js$/.test(module))).toEqual([]);
    expect(of(/mime-db\/db\.json$/)).toHaveLength(1);
  });

  it('loads no package from elsewhere but those that read files beside their own', () => {
    const asked = all().flatMap((text) =>
      [...text.matchAll(ASKED)].map(([, alone, named]) => (alone ?? named)!),
    );
    expect(asked).toContain('node:http');
    const installed = asked.filter((name) => existsSync(join(ROOT, 'node_modules', packageOf(name))));
    expect([...new Set(installed.map(packageOf))].sort()).toEqual([
      '@pydantic/genai-prices',
      'pino',
      'swagger-ui-dist',
    ]);
  });

  it('is ASCII: one other character doubles what a file takes in memory', () => {
    for (const file of readdirSync(FOLDER).filter((name) => name.endsWith('.js')))
      expect([file, /[^\0-\x7f]/.exec(read(file))?.[0]]).toEqual([file, undefined]);
  });

  it('loads for the command line only what every command needs', () => {
    const packages = modulesOf(reachable('cli.js', STATIC))
      .filter((path) => path.startsWith('node_modules/'))
      .map(packageOf);
    expect([...new Set(packages)].sort()).toEqual([
      'ansi-regex',
      'commander',
      'get-east-asian-width',
      'openapi-fetch',
      'string-width',
      'strip-ansi',
    ]);
  });
});
