import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

// Each test file is in one tier, by the end of its name, and each tier has a command.

const ROOT = join(__dirname, '../..');

interface Tier {
  command: string;
  endings: string[];
  isByHand?: boolean;
  also?: string[];
}
const { TIERS, testFiles } = (await import(join(ROOT, 'scripts/tiers.mjs'))) as {
  TIERS: Record<string, Tier>;
  testFiles: () => Map<string, string>;
};

/**
 * What `npm test` may start beside the process of the tests: programs of others, for some milliseconds or for a file. What is
 * ours (a gateway, a command, a script, the modules of src/) is started in `*.processes.ts` or `*.tools.ts`.
 */
const STARTS_PROGRAMS: Record<string, string> = {
  'admin/system.test.ts': 'git',
  'apply/attack.test.ts': 'mkfifo',
  'cli/completion.test.ts': 'bash, with the script of `postern completion`',
  'docs/cron.test.ts': 'sh, with a script of the documentation',
  'docs/examples.test.ts': 'the formatter',
  'docs/reference/module-api.ts': 'tsc',
  'fuzz/lenient-readers.ts': 'the parsers of other languages',
  'identity/guides.test.ts': 'bash, with scripts of the documentation',
  'limits/sdk-rejections.test.ts': 'python, with an SDK',
  'packaging/install-scripts.test.ts': 'npm, in a folder of its own',
  'packaging/kubernetes.test.ts': 'kubectl',
  'packaging/systemd.test.ts': 'systemd-analyze',
  'policies-by-url/receivers.test.ts': 'a receiver of the documentation',
  'providers/keyless/attacks.test.ts': 'mkfifo',
  'sdk/stand-in.ts': 'providers of a package',
  'support/front-nginx.ts': 'nginx',
  'support/pooler.ts': 'pgbouncer',
  'support/unaccepting-port.ts': 'a listener that accepts nothing, without its event loop',
  'wire/nginx.ts': 'nginx',
};

const sources = ['test', 'src'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .map((path) => `${folder}/${path.replaceAll('\\', '/')}`)
    .filter((path) => /\.[cm]?tsx?$/.test(path)),
);
const text = new Map(sources.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]));

/** The files below test/ that a file imports, but for their types alone. */
function importsOf(file: string): string[] {
  const found = text
    .get(file)!
    .matchAll(/(?:^(?:import|export)(?! type)[^;]*?\bfrom |^import |\bimport\()'(\.[^']+)'/gm);
  return [...found]
    .map(([, path]) => posix.join(dirname(file), path!).replace(/\.js$/, '.ts'))
    .filter((path) => path.startsWith('test/') && text.has(path));
}

const starts = (file: string) => /'node:(child_process|cluster)'/.test(text.get(file)!);

/** What starts processes, of a file and of all that it imports. */
function startersOf(file: string, seen = new Set<string>()): string[] {
  if (seen.has(file)) return [];
  seen.add(file);
  return [
    ...(starts(file) ? [file.slice('test/'.length)] : []),
    ...importsOf(file).flatMap((path) => startersOf(path, seen)),
  ];
}

const files = testFiles();
const inWorker = [...files].filter(([, tier]) => tier === 'worker').map(([file]) => file);

it('has every test in a file of one tier', () => {
  const declares = /^(describe|it|test|never)\b[.(]|^\(.* \? (describe|it) : |^itNeeding\(/m;
  expect(sources.filter((path) => declares.test(text.get(path)!) && !files.has(path))).toEqual([]);
  const endings = Object.values(TIERS).flatMap((tier) => tier.endings);
  expect(new Set(endings).size).toBe(endings.length);
  for (const [name, { also = [] }] of Object.entries(TIERS))
    expect([name, also.filter((path) => !files.has(path))]).toEqual([name, []]);
  const used = new Set(files.values());
  const unused = Object.keys(TIERS).filter((name) => !used.has(name) && TIERS[name]!.endings.length > 0);
  expect(unused).toEqual([]);
});

it('runs all tests of a file', () => {
  const chosen = /^ *((describe|it|test)\.only|fit|fdescribe)\b/m;
  expect(sources.filter((path) => chosen.test(text.get(path)!))).toEqual([]);
});

it('has a command for every tier, and those that are not by hand in .ci/run', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const ci = readFileSync(join(ROOT, '.ci/run'), 'utf8');
  for (const [name, { command, isByHand = false }] of Object.entries(TIERS)) {
    expect(scripts[command.replace(/^npm (run )?/, '')]).toMatch(
      name === 'worker'
        ? /^exec node scripts\/test\.mjs$/
        : new RegExp(`--tier ${name}$|test-${name}\\.mjs$`),
    );
    expect([name, ci.includes(`\nstep ${command}\n`)]).toEqual([name, !isByHand]);
  }
});

it('starts no process of Postern with npm test', () => {
  const found = inWorker.flatMap((file) =>
    startersOf(file)
      .filter((starter) => !(starter in STARTS_PROGRAMS))
      .map((starter) => `${file}: ${starter}`),
  );
  expect(found).toEqual([]);
  const used = new Set(inWorker.flatMap((file) => startersOf(file)));
  expect(Object.keys(STARTS_PROGRAMS).filter((path) => !used.has(path))).toEqual([]);
});
