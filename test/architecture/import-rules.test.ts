import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

/**
 * The house has rooms, and the arrows between them point one way: what answers to the outside leans on what knows
 * keys, providers and calls, which leans on the database and the settings. Never back up.
 */
const MAY_LEAN_ON: Record<string, readonly string[]> = {
  platform: [],
  errors: [],
  'embedded-postgres': [],
  config: [],
  database: ['config'],
  audit: ['database', 'config'],
  keys: ['audit', 'database', 'config'],
  providers: ['audit', 'database', 'config'],
  'request-log': ['database', 'config'],
  idempotency: ['database', 'config'],
  proxy: ['keys', 'providers', 'request-log', 'idempotency', 'database', 'config'],
  admin: ['audit', 'keys', 'providers', 'request-log', 'idempotency', 'database', 'config'],
  operations: ['admin', 'proxy', 'keys', 'providers', 'request-log', 'idempotency', 'database', 'config'],
  cli: [
    'audit',
    'admin',
    'operations',
    'proxy',
    'keys',
    'providers',
    'request-log',
    'idempotency',
    'embedded-postgres',
    'database',
    'config',
  ],
};

/** What holds no opinion about gateways: every module may use it. */
const FOR_ALL = ['platform', 'errors'];

/** Puts the gateway together, as the top-level files do: `cluster` starts a gateway in each worker. */
const COMPOSITION = ['cluster'];

// The rule for a provider's URL is the provider room's, and the settings apply it to PROVIDER_URL. It is pure and
// imports nothing of the house (held below), so that this one arrow closes no circle.
const EXCEPTIONS = ['config/env-schema.ts -> providers/provider-url.ts'];

const src = join(__dirname, '../../src');
const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => path.endsWith('.ts'))
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

/** Top-level files (main, app.module ...) and what else puts the gateway together belong to no room. */
function roomOf(file: string): string | undefined {
  const folder = file.includes('/') ? file.slice(0, file.indexOf('/')) : undefined;
  return folder !== undefined && COMPOSITION.includes(folder) ? undefined : folder;
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

  it('has only rooms with a known question', () => {
    const rooms = new Set(files.map(roomOf).filter((room) => room !== undefined));
    expect([...rooms].filter((room) => !(room in MAY_LEAN_ON))).toEqual([]);
  });

  it('has arrows that point one way', () => {
    const wrong = arrows.filter(({ from, to, text }) => {
      const [room, target] = [roomOf(from), roomOf(to)];
      if (room === undefined || target === undefined || room === target || EXCEPTIONS.includes(text))
        return false;
      return !FOR_ALL.includes(target) && !MAY_LEAN_ON[room]?.includes(target);
    });
    expect(wrong.map(({ text }) => text)).toEqual([]);
  });

  it('has exceptions that are used, and that import nothing themselves', () => {
    for (const exception of EXCEPTIONS) {
      expect(arrows.map(({ text }) => text)).toContain(exception);
      expect(imports.get(exception.split(' -> ')[1] ?? '')).toEqual([]);
    }
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
