import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

/**
 * What each folder of src may import besides itself, from the bottom up. A folder that is not listed is a module of its
 * own: it may import every listed folder but `cli`, and no listed folder may import it.
 */
const MAY_IMPORT: Record<string, readonly string[]> = layers(
  ['platform'],
  ['errors', 'tokens'],
  ['config', 'embedded-postgres'],
  ['database'],
  ['admin'],
  ['audit'],
  ['teams', 'providers'],
  ['keys', 'request-log', 'idempotency'],
  ['auth', 'requests'],
  ['proxy'],
  ['observability'],
  ['cli'],
);

/** Folders of one layer do not import each other. */
function layers(...names: string[][]): Record<string, readonly string[]> {
  return Object.fromEntries(
    names.flatMap((layer, i) => layer.map((name) => [name, names.slice(0, i).flat()])),
  );
}

function mayImport(from: string, to: string): boolean {
  return MAY_IMPORT[from] === undefined ? to !== 'cli' : MAY_IMPORT[from].includes(to);
}

/** What holds no opinion about gateways: every module may use it. */
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

/** The house's own files that a file imports: static, dynamic and type-only, relative to src. */
function importsOf(file: string): string[] {
  const found = (code.get(file) ?? '').matchAll(/(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]+)\.js['"]/g);
  const paths = [...found].map(([, path]) => posix.join(posix.dirname(file), `${path}.ts`));
  return paths.filter((path) => !path.startsWith('..'));
}

/**
 * What puts the gateway together, as the top-level files do: `cluster` starts one in each worker, and the data source of
 * the migrations loads every module for its entities.
 */
const COMPOSITION = /^cluster\/|^cli\/data-source\.ts$/;

/** Top-level files (main, app.module ...) and what else puts the gateway together belong to no folder. */
function roomOf(file: string): string | undefined {
  return file.includes('/') && !COMPOSITION.test(file) ? file.slice(0, file.indexOf('/')) : undefined;
}

const arrows = files.flatMap((from) =>
  (imports.get(from) ?? []).map((to) => ({ from, to, text: `${from} -> ${to}` })),
);

function matching(pattern: RegExp, except: readonly string[] = []): string[] {
  return files.filter((file) => !except.includes(file) && pattern.test(code.get(file) ?? ''));
}

describe('the house', () => {
  it('is looked at: files and imports were found, and every import leads to a file', () => {
    expect(files.length).toBeGreaterThan(20);
    expect(arrows.length).toBeGreaterThan(20);
    expect(arrows.filter(({ to }) => !code.has(to)).map(({ text }) => text)).toEqual([]);
  });

  it('has arrows that point one way', () => {
    const wrong = arrows.filter(({ from, to }) => {
      const [room, target] = [roomOf(from), roomOf(to)];
      if (room === undefined || target === undefined || room === target) return false;
      return !mayImport(room, target);
    });
    expect(wrong.map(({ text }) => text)).toEqual([]);
  });

  it('has top-level files that either build the house or lean on no room, never both', () => {
    const words = new Set(arrows.filter(({ from, to }) => roomOf(from) && !roomOf(to)).map(({ to }) => to));
    const leaning = arrows.filter(
      ({ from, to }) => words.has(from) && roomOf(to) && !FOR_ALL.includes(roomOf(to)!),
    );
    expect(leaning.map(({ text }) => text)).toEqual([]);
  });

  it('loads the embedded Postgres only where it is asked for', () => {
    const eager = (file: string) =>
      /^(import|export)\s(?!type\b)[^;]*\/embedded-postgres\/(?!embedded-postgres-error\.js)/m.test(
        code.get(file) ?? '',
      );
    expect(files.filter((file) => roomOf(file) !== 'embedded-postgres' && eager(file))).toEqual([]);
  });

  it('has a CLI that uses the services, not the HTTP controllers', () => {
    const wrong = arrows.filter(({ from, to }) => roomOf(from) === 'cli' && to.endsWith('.controller.ts'));
    expect(wrong.map(({ text }) => text)).toEqual([]);
  });

  it('has no circles between files', () => {
    expect(circles()).toEqual([]);
  });

  it('has no forwardRef, no barrel and no folder for odds and ends', () => {
    expect(matching(/\bforwardRef\b/)).toEqual([]);
    expect(matching(/^export\s+(type\s+)?\*/m)).toEqual([]);
    expect(files.filter(isBarrel)).toEqual([]);
    expect(
      files.filter((file) => /(^|\/)(index\.ts$|(utils?|common|helpers?|shared|lib)\/)/.test(file)),
    ).toEqual([]);
  });

  it('reads the environment in one place', () => {
    const anyWay = /\bprocess\s*(\?\.|\.)\s*env\b|\bprocess\s*\[|\benv\b[^;]*from ['"](node:)?process['"]/;
    expect(matching(anyWay, ['config/env.ts'])).toEqual([]);
    const destructured = /\{[^}]*\benv\b[^}]*\}\s*=\s*process\b/;
    expect(matching(destructured)).toEqual([]);
  });
});

/** A file that has nothing of its own, only other files' names. */
function isBarrel(file: string): boolean {
  const own = (code.get(file) ?? '').replace(/^(import|export)\s[^;]*\bfrom\s[^;]*;/gm, '').trim();
  return own === '' && (imports.get(file) ?? []).length > 0;
}

/** Every import that leads back to a file it came from, as the way round. */
function circles(): string[] {
  const found: string[] = [];
  const finished = new Set<string>();
  const visit = (file: string, way: string[]): void => {
    const seenAt = way.indexOf(file);
    if (seenAt !== -1) found.push([...way.slice(seenAt), file].join(' -> '));
    if (seenAt !== -1 || finished.has(file)) return;
    for (const next of imports.get(file) ?? []) visit(next, [...way, file]);
    finished.add(file);
  };
  for (const file of files) visit(file, []);
  return found;
}
