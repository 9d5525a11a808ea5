import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { cyclesOf } from './import-cycles.js';

/**
 * What each folder of src may import besides itself, from the bottom up. A folder that is not listed is a module of its
 * own: it may import every listed folder but `cli`, and no listed folder may import it.
 */
const MAY_IMPORT: Record<string, readonly string[]> = layers(
  ['platform', 'client'],
  ['bodies'],
  ['errors'],
  ['config', 'embedded-postgres'],
  ['database'],
  ['regressions'],
  ['admin'],
  ['audit'],
  ['providers'],
  ['limit-rules'],
  ['teams'],
  ['regressions/decisions', 'admin/tokens', 'admin/session-list', 'keys', 'request-log'],
  ['idempotency'],
  ['auth', 'requests', 'routes'],
  ['proxy'],
  ['observability'],
  ['usage'],
  ['pricing'],
  ['cli'],
);

/** Folders of one layer do not import each other. */
function layers(...names: string[][]): Record<string, readonly string[]> {
  return Object.fromEntries(
    names.flatMap((layer, i) => layer.map((name) => [name, names.slice(0, i).flat()])),
  );
}

function mayImport(from: string, to: string): boolean {
  // The command line is on top of every module.
  if (from === 'cli') return true;
  return MAY_IMPORT[from] === undefined ? to !== 'cli' : MAY_IMPORT[from].includes(to);
}

/** What the package exports: the only barrels. */
const ENTRIES = ['index.ts', 'testing/index.ts', 'client/index.ts'];

/** Folders that every module may use. */
const FOR_ALL = ['platform', 'errors'];

const src = join(__dirname, '../../src');
const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.spec.ts'))
  .sort();

const code = new Map(files.map((file) => [file, withoutComments(readFileSync(join(src, file), 'utf8'))]));
const imports = new Map(files.map((file) => [file, importsOf(file)]));

/** A `//` inside a string follows a colon (https://) or a quote, never a space. */
function withoutComments(text: string): string {
  return text.replace(/\/\*[^]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1');
}

/** The files of src that a file imports: static, dynamic and type-only, relative to src. */
function importsOf(file: string): string[] {
  const found = (code.get(file) ?? '').matchAll(/(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]+)\.js['"]/g);
  const paths = [...found].map(([, path]) => posix.join(posix.dirname(file), `${path}.ts`));
  return paths.filter((path) => !path.startsWith('..'));
}

/**
 * Files that compose the gateway, as the top-level files do: `runtime` starts one in each process, `testing` in tests, a command without a
 * gateway opens the admin API, and the commands for migrations load every module for its entities.
 */
const COMPOSITION =
  /^(runtime|testing)\/|^cli\/(data-source|local-app|module-commands|migrations\/project-migration)\.ts$/;

/** What a module of an operator's own imports: `postern` in an application. */
const FOR_MODULES = ['postern.module.ts', 'index.ts'];

/** A command belongs to the command line, also in the folder of a module. */
const COMMAND = /\.command\.ts$/;

/** The folder of a file; undefined for top-level files (main, app.module ...) and others that compose the gateway. */
function folderOf(file: string): string | undefined {
  if (!file.includes('/') || COMPOSITION.test(file)) return undefined;
  if (COMMAND.test(file)) return 'cli';
  const [first, second] = file.split('/');
  // A folder of its own layer inside of another one.
  return MAY_IMPORT[`${first}/${second}`] === undefined ? first : `${first}/${second}`;
}

const arrows = files.flatMap((from) =>
  (imports.get(from) ?? []).map((to) => ({ from, to, text: `${from} -> ${to}` })),
);

function matching(pattern: RegExp, except: readonly string[] = []): string[] {
  return files.filter((file) => !except.includes(file) && pattern.test(code.get(file) ?? ''));
}

describe('the source layout', () => {
  it('is read: files and imports were found, and every import resolves to a file', () => {
    expect(files.length).toBeGreaterThan(20);
    expect(arrows.length).toBeGreaterThan(20);
    expect(arrows.filter(({ to }) => !code.has(to)).map(({ text }) => text)).toEqual([]);
  });

  it('has imports that point from upper layers to lower ones', () => {
    const wrong = arrows.filter(({ from, to }) => {
      const [folder, target] = [folderOf(from), folderOf(to)];
      if (folder === undefined || target === undefined || folder === target) return false;
      return !mayImport(folder, target);
    });
    expect(wrong.map(({ text }) => text)).toEqual([]);
  });

  // An organisation's own modules need no line there.
  it('has a page, layout.md, that names every folder of the layers', () => {
    const page = readFileSync(join(src, '../docs/develop/layout.md'), 'utf8');
    const folders = [...Object.keys(MAY_IMPORT), 'runtime', 'runtime/cluster', 'testing'];
    expect(folders.filter((name) => !page.includes(`](../../src/${name})`))).toEqual([]);
  });

  it('has top-level files that either compose the gateway or import no folder, never both', () => {
    // A folder may use a composing file of its own.
    const imported = new Set(
      arrows
        .filter(({ from, to }) => folderOf(from) && !folderOf(to) && !to.startsWith(`${folderOf(from)}/`))
        .filter(({ from, to }) => !FOR_MODULES.includes(to) || MAY_IMPORT[folderOf(from)!] !== undefined)
        .map(({ to }) => to),
    );
    const leaning = arrows.filter(
      ({ from, to }) => imported.has(from) && folderOf(to) && !FOR_ALL.includes(folderOf(to)!),
    );
    expect(leaning.map(({ text }) => text)).toEqual([]);
  });

  it('has nothing for tests in what runs', () => {
    const wrong = arrows.filter(({ from, to }) => to.startsWith('testing/') && !from.startsWith('testing/'));
    expect(wrong.map(({ text }) => text)).toEqual([]);
    // Where an application that does not override anything has none.
    const eager = /^(import|export)\s(?!type\b)[^;]*from ['"]@nestjs\/testing['"]/m;
    expect(matching(/@nestjs\/testing['"]/)).toEqual(['testing/overrides.ts']);
    expect(matching(eager)).toEqual([]);
  });

  it('loads the embedded Postgres only where it is asked for', () => {
    const eager = (file: string) =>
      /^(import|export)\s(?!type\b)[^;]*\/embedded-postgres\/(?!embedded-postgres-error\.js)/m.test(
        code.get(file) ?? '',
      );
    expect(files.filter((file) => folderOf(file) !== 'embedded-postgres' && eager(file))).toEqual([]);
  });

  it('has a CLI that uses the admin API, and services only for what is not an endpoint', () => {
    const wrong = arrows.filter(
      ({ from, to }) => folderOf(from) === 'cli' && /\.(controller|service|module|entity)\.ts$/.test(to),
    );
    expect(wrong.map(({ text }) => text)).toEqual([
      'cli/commands/reseal.command.ts -> providers/reseal.service.ts',
    ]);
  });

  it('has no import cycle between files, type-only imports included', () => {
    expect(cyclesOf(imports)).toEqual([]);
  });

  it('has no forwardRef, no barrel and no folder for miscellaneous files', () => {
    expect(matching(/\bforwardRef\(\s*\(/)).toEqual([]);
    expect(matching(/^export\s+(type\s+)?\*(?! as )/m)).toEqual([]);
    const isOurs = (file: string) => !ENTRIES.includes(file);
    expect(files.filter(isBarrel).filter(isOurs)).toEqual([]);
    expect(
      files
        .filter(isOurs)
        .filter((file) => /(^|\/)(index\.ts$|(utils?|common|helpers?|shared|lib)\/)/.test(file)),
    ).toEqual([]);
  });

  it('has at most 24 files in a folder', () => {
    const sizes = new Map<string, number>();
    for (const file of files) sizes.set(posix.dirname(file), (sizes.get(posix.dirname(file)) ?? 0) + 1);
    expect([...sizes].filter(([, size]) => size > 24)).toEqual([]);
  });

  it('imports packages by their public entry points only', () => {
    const internal =
      /(?:\bfrom|\bimport)\s*\(?\s*['"](?!node:|csv-stringify\/sync['"])(?:@[^'"/]+\/)?[^'"./@][^'"/]*\//;
    // Nest exports what resolves guards and interceptors nowhere else.
    expect(matching(internal, ['proxy/fast-path.ts'])).toEqual([]);
  });

  it('loads @nestjs/swagger only for the API document, not at the start', () => {
    const atStart = /^import (?!type )[^;]*from ['"]@nestjs\/swagger['"]/m;
    // A module of one's own may import it.
    const ours = (file: string) => MAY_IMPORT[folderOf(file) ?? 'admin'] !== undefined;
    expect(matching(atStart).filter(ours)).toEqual(['admin/api-document.ts']);
    const toDocument = /^import (?!type )[^;]*\/api-document\.js['"]/m;
    expect(matching(toDocument)).toEqual([]);
  });

  it('connects to Postgres with the settings of every session', () => {
    // Tests look at the database from outside.
    const outside = files.filter((file) => file.startsWith('testing/'));
    expect(matching(/\bnew pg\.(Client|Pool)\(/, ['database/open-pool.ts', ...outside])).toEqual([]);
    // Of the embedded server, to create its database.
    const clients = /import [^;]*\bClient\b[^;]* from 'pg'/;
    expect(matching(clients, ['embedded-postgres/connection.ts'])).toEqual([]);
  });

  it('reads the environment in one place', () => {
    const anyWay = /\bprocess\s*(\?\.|\.)\s*env\b|\bprocess\s*\[|\benv\b[^;]*from ['"](node:)?process['"]/;
    expect(matching(anyWay, ['config/env-source.ts'])).toEqual([]);
    const destructured = /\{[^}]*\benv\b[^}]*\}\s*=\s*process\b/;
    expect(matching(destructured)).toEqual([]);
  });
});

/** A file that only re-exports other files. */
function isBarrel(file: string): boolean {
  const own = (code.get(file) ?? '').replace(/^(import|export)\s[^;]*\bfrom\s[^;]*;/gm, '').trim();
  return own === '' && (imports.get(file) ?? []).length > 0;
}
