// `npm run check`: the steps of .ci/run after the installation. `npm run check -- --changed`: lint, and the tests that the
// changes since the branch left main reach; `--changed=<commit>`: since that commit.
import { execFileSync, spawnSync } from 'node:child_process';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { runNode } from './child.mjs';
import { read, root } from './files.mjs';
import { main, npmScript, prepare, StepError } from './prepare.mjs';
import { filesOf, OF_EVERY_CHANGE, tierOf } from './tiers.mjs';

const JEST = join(root, 'node_modules', 'jest', 'bin', 'jest.js');

/** What tests reach without an import, beside what they name: whole tiers, or the test files of folders. */
const REACHED = [
  {
    // How tests are compiled, found and run, every package, and every database.
    changed:
      /^(package(-lock)?|nest-cli|tsconfig\S*)\.json$|^(\.npmrc|\.swcrc|jest\.config\.js)$|^migrations\/|^test\/support\/\S+(?<!\.ts)$/,
    tiers: OF_EVERY_CHANGE,
  },
  {
    changed: /^scripts\/(bundle|check-node|child|compile|files|lock|prepare|test|tiers)\.mjs$/,
    tiers: OF_EVERY_CHANGE,
  },
  // They run the build, and the package that is made of it.
  { changed: /^src\//, tiers: ['processes'] },
  { changed: /^src\//, tiers: ['tools'], folders: ['test/packaging/package.tools.ts'] },
  {
    changed: /^(bin|scripts|templates|src\/(testing|client))\/|^src\/index\.ts$|^\.oxlintrc\.json$/,
    tiers: ['tools'],
  },
  { changed: /^(console\/|openapi\.json$)/, tiers: ['browser'] },
  // They read whatever is there.
  { changed: /^/, folders: ['test/architecture', 'test/docs', 'test/packaging'], tiers: ['worker'] },
];

await main(async () => {
  const { values } = parseArgs({
    args: withValue(process.argv.slice(2)),
    options: { changed: { type: 'string' } },
  });
  await prepare({ all: true, build: false });
  for (const args of values.changed === undefined ? steps() : reached(changedFiles(values.changed))) {
    console.log(`== ${args.slice(0, 6).join(' ')}${args.length > 6 ? ' …' : ''}`);
    const code = await runNode(args[0] === 'npm' ? [npmScript(), ...args.slice(1)] : args, { cwd: root });
    if (code !== 0) return code;
  }
  return 0;
});

/** The value of `--changed` may be left out. */
function withValue(args) {
  return args.map((arg) => (arg === '--changed' ? '--changed=' : arg));
}

function steps() {
  const all = [...read('.ci/run').matchAll(/^step (npm .*)$/gm)].map(([, step]) => step.split(' '));
  return all.filter(([, command]) => command !== 'ci');
}

/** Also those that are not committed. @param since a commit; empty: where the branch left main */
function changedFiles(since) {
  const from =
    since || ['origin/main', 'main'].find((name) => git('rev-parse', '--verify', '--quiet', name).length > 0);
  const [base] = from === undefined ? [] : git('merge-base', 'HEAD', from);
  if (base === undefined)
    throw new StepError('Name the commit before the changes: npm run check -- --changed=<commit>', 1);
  return [
    ...git('diff', '--name-only', '--no-renames', base),
    ...git('ls-files', '--others', '--exclude-standard'),
  ];
}

/** @returns lines; none where git found nothing */
function git(...args) {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  if (status !== 0 && status !== 1) throw new StepError(stderr || 'git cannot be run.', 1);
  return stdout.split('\n').filter((line) => line !== '');
}

/** What checks these files: the arguments of each command. */
function reached(changed) {
  console.log(`${changed.length} files have changed.`);
  if (changed.length === 0) return [];
  const imported = relatedTo(changed.flatMap((path) => [path, ...naming(path)]));
  const isReached = (file, tier) =>
    imported.has(file) || changed.some((path) => besides(path, file) || byRule(path, file, tier));
  const commands = OF_EVERY_CHANGE.map((tier) => {
    const all = filesOf(tier);
    const chosen = all.filter((file) => isReached(file, tier));
    console.log(`${tier}: ${chosen.length} of ${all.length} files`);
    return { tier, chosen };
  });
  return [
    ['npm', 'run', 'lint'],
    ...commands
      .filter(({ chosen }) => chosen.length > 0)
      .map(({ tier, chosen }) => ['scripts/test.mjs', '--tier', tier, '--reached', ...chosen]),
  ];
}

/** The tests that import them, by Jest. */
function relatedTo(paths) {
  const printed = execFileSync(process.execPath, [JEST, '--listTests', '--findRelatedTests', ...paths], {
    cwd: root,
    encoding: 'utf8',
  });
  return new Set(printed.split('\n').map((path) => relative(root, path).replaceAll('\\', '/')));
}

/** Files of the tests that name a file, or its folder: what is outside of src/ and test/ is read, not imported. */
function naming(path) {
  if (/^(src|test)\//.test(path)) return [];
  const folder = dirname(path);
  const names = folder === '.' ? [`/${path}'`, `'${path}'`] : [path, `${folder}'`, `${folder}/'`];
  return git(
    'grep',
    '--files-with-matches',
    '--fixed-strings',
    ...names.flatMap((name) => ['-e', name]),
    '--',
    'test',
  ).filter((file) => file.endsWith('.ts'));
}

/** Is it a file that the tests of its folder may start or read? */
function besides(path, file) {
  const folder = dirname(path);
  return (
    folder.startsWith('test/') &&
    folder !== 'test/support' &&
    tierOf(path) === undefined &&
    dirname(file) === folder
  );
}

function byRule(path, file, tier) {
  return REACHED.some(
    ({ changed, tiers, folders }) =>
      changed.test(path) &&
      tiers.includes(tier) &&
      (folders ?? ['']).some((folder) => file.startsWith(folder)),
  );
}
