// TypeScript to JavaScript, one file each, by swc and .swcrc: what `npm start` runs (dist/) and what the tests run
// (.test-build/). SQL is copied. Types are checked by `npm run lint`. Only files whose content changed are compiled
// again.
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundle, isBundleFresh } from './bundle.mjs';
import { hash, read, root, write } from './files.mjs';

const MANIFEST = '.postern-build';
/** The argument of this script, which compiles the product. */
export const WITHOUT_BUNDLE = '--without-bundle';

/** The product. `*.spec.ts` beside a source is its test. */
const PRODUCT = { to: 'dist', folders: ['src', 'migrations'], isWanted: (path) => !/\.spec\.ts$/.test(path) };
/** The product and its tests, which import it by relative paths, and packages from node_modules. */
const TESTS = { to: '.test-build', folders: ['src', 'migrations', 'test', 'bench'], isWanted: () => true };

/** @param bundled also makes the bundle, which `--watch` does without. @returns whether anything had to be made again */
export async function compileProduct({ bundled = true } = {}) {
  const compiled = await compile(PRODUCT);
  return (bundled && (await bundle())) || compiled > 0;
}
export const compileTests = () => compile(TESTS);
/** Is dist/ what the sources make? */
export const isProductFresh = ({ bundled = true } = {}) => {
  const { changed, gone } = plan(PRODUCT);
  return changed.length === 0 && gone.length === 0 && (!bundled || isBundleFresh());
};

/** The error lists every file that cannot be compiled. @returns how many files were compiled */
async function compile(target) {
  const { made, changed, gone, isNew } = plan(target);
  if (changed.length === 0 && gone.length === 0) return 0;
  const to = join(root, target.to);
  if (isNew) rmSync(to, { recursive: true, force: true });
  // First: if this is interrupted, what it was compiling counts as unknown.
  for (const { path } of changed) delete made[path];
  if (!isNew) write(target.to, MANIFEST, JSON.stringify(made));
  const { transform } = await import('@swc/core');
  const results = await Promise.allSettled(
    changed.map(async ({ path, text, digest }) => {
      for (const [name, content] of Object.entries(await emitted(transform, path, text)))
        write(target.to, name, content);
      made[path] = digest;
    }),
  );
  for (const path of gone) {
    delete made[path];
    for (const name of outputsOf(path)) rmSync(join(to, name), { force: true });
  }
  // What compiled is kept, so that fixing one file does not compile all others again.
  const failed = results.flatMap((result, at) => (result.status === 'rejected' ? [changed[at].path] : []));
  write(target.to, MANIFEST, JSON.stringify(made));
  if (failed.length > 0) {
    const reasons = results
      .filter(({ status }) => status === 'rejected')
      // Without the compiler's own stack.
      .map(({ reason }) => String(reason.message).split('\n\n\nCaused by:')[0]);
    throw new Error(`${failed.join(', ')}:\n${reasons.join('\n')}`);
  }
  return changed.length;
}

/** @returns `made`: digests of what is up to date; `changed`: what has to be compiled; `gone`: sources no longer there */
function plan({ to, folders, isWanted }) {
  const known = readJson(join(root, to, MANIFEST));
  // Another compiler or other options: compile everything.
  const compiler = read('node_modules', '@swc', 'core', 'package.json');
  const salt = hash(read('.swcrc'), compiler, read('scripts', 'compile.mjs'));
  const isNew = known?.salt !== salt;
  const made = isNew ? { salt } : { ...known };
  const changed = [];
  const seen = new Set(['salt']);
  for (const path of folders.flatMap(sourcesIn).filter(isWanted)) {
    const text = readFileSync(join(root, path), 'utf8');
    const digest = hash(text);
    seen.add(path);
    if (made[path] !== digest || !existsSync(join(root, to, outputsOf(path)[0])))
      changed.push({ path, text, digest });
  }
  return { made, changed, gone: Object.keys(made).filter((path) => !seen.has(path)), isNew };
}

/** Paths below the root, with slashes. */
function sourcesIn(folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : sourcesIn(path);
    return /\.(ts|mjs|sql)$/.test(entry.name) && !entry.name.endsWith('.d.ts') ? [path] : [];
  });
}

const outputsOf = (path) =>
  path.endsWith('.ts') ? [path.replace(/ts$/, 'js'), path.replace(/ts$/, 'js.map')] : [path];

/** @returns contents by the names of their files */
async function emitted(transform, path, text) {
  if (path.endsWith('.sql')) return { [path]: text };
  const [script, map] = outputsOf(path);
  const source = join(root, path);
  // JavaScript stays where it is and is passed on.
  if (map === undefined) {
    const from = JSON.stringify(pathToFileURL(source).href);
    const byDefault = /^export default\b/m.test(text) ? `export { default } from ${from};\n` : '';
    return { [script]: `export * from ${from};\n${byDefault}` };
  }
  const { code, map: mappings } = await transform(text, {
    filename: source,
    configFile: join(root, '.swcrc'),
    sourceFileName: relative(dirname(join(root, PRODUCT.to, path)), source),
  });
  // ES modules have no __dirname: here it is the folder of the source, beside which a test's files lie. On the first
  // line, so that the map stays true.
  const names = /\b__dirname\b/.test(code) ? `const __dirname = ${JSON.stringify(dirname(source))}; ` : '';
  return { [script]: `${names}${code}\n//# sourceMappingURL=${basename(map)}\n`, [map]: mappings };
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
}

if (basename(process.argv[1] ?? '') === basename(import.meta.url)) {
  try {
    await compileProduct({ bundled: !process.argv.includes(WITHOUT_BUNDLE) });
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
