// `npm run lint`: Oxlint (.oxlintrc.json), Oxfmt (.oxfmtrc.json) and TypeScript, which only checks what changed (its caches
// are in node_modules/.cache). `--fix` (`npm run format`) fixes what can be fixed.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { runNode } from './child.mjs';
import { withLock } from './lock.mjs';
import { install, isInstalled, main, npmScript, prepare, root } from './prepare.mjs';

const at = (...parts) => join(root, 'node_modules', ...parts);
const fix = process.argv.includes('--fix');

const run = (tool, ...args) => runNode([tool, ...args], { cwd: root });
const oxlint = (...args) => run(at('oxlint', 'bin', 'oxlint'), ...args, ...(fix ? ['--fix'] : []));
/** With types, but for packages of their own, which may not be installed. */
const lint = async () =>
  Math.max(await oxlint('--type-aware', 'src', 'migrations', 'test'), await oxlint('console', 'templates'));
const oxfmt = () => run(at('oxfmt', 'bin', 'oxfmt'), fix ? '--write' : '--check');
// Also the types: what runs is compiled without looking at them. Oxlint could check them too, but only in files that it
// lints: not in those that are generated.
const tsc = (project, name) =>
  run(
    at('typescript-7', 'bin', 'tsc'),
    '--noEmit',
    '--project',
    project,
    '--incremental',
    '--tsBuildInfoFile',
    at('.cache', `${name}.tsbuildinfo`),
  );

/** The console is a package of its own, and the types of its requests are made from openapi.json. */
async function tscOfConsole() {
  const folder = join(root, 'console');
  if (!existsSync(folder)) return 0;
  return withLock(
    join(folder, '.build-lock'),
    async () => {
      if (!isInstalled({ folder, all: true })) await install(process.stdout, { folder, all: true });
      const code = await runNode([npmScript(), 'run', 'types', '--silent'], {
        cwd: folder,
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      return code || tsc(join(folder, 'tsconfig.json'), 'tsc-console');
    },
    (pid) => console.log(`Waiting for a build of the console (process ${pid}) ...`),
  );
}

await main(async () => {
  await prepare({ build: false, all: true });
  // Both, whatever the first finds: an error that Oxlint cannot fix must not leave files unformatted.
  if (fix) return Math.max(await lint(), await oxfmt());
  const codes = await Promise.all([
    lint(),
    oxfmt().then(async (code) => (await tsc(root, 'tsc')) || (await tscOfConsole()) || code),
  ]);
  return Math.max(...codes);
});
