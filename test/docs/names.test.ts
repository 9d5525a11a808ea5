import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { GATEWAY_ERROR_CODES } from '../../src/errors/gateway-error.js';
import * as ofPolicies from '../../src/policies-by-url/decision/errors.js';
import { fences, pages, read, ROOT } from './pages.js';
import { commands, type CommandHelp } from './reference/cli.js';

// What a page names must exist.

const CODES = [...GATEWAY_ERROR_CODES, ...Object.values(ofPolicies).map(({ code }) => code)];
const all = pages().filter((page) => page !== 'bench/RESULTS.md');

function found(pattern: RegExp, page: string): string[] {
  return [...new Set([...read(page).matchAll(pattern)].map(([, name]) => name!))].sort();
}

it('README.md has at most 140 lines', () => {
  expect(read('README.md').split('\n').length).toBeLessThanOrEqual(141);
});

it.each(all)('%s names only npm scripts that exist', (page) => {
  // The console is a package of its own.
  const ownPackage = page.startsWith('console/') ? 'console/package.json' : 'package.json';
  const { scripts } = JSON.parse(read(ownPackage)) as { scripts: Record<string, string> };
  const named = found(/npm run (?:--silent )?([a-z][a-z:-]*)/g, page);
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
});

// What SDKs, Node, Nest and systemd read is not ours, nor are causes of errors; POSTERN_URL and its token are read by the command line alone.
const FOREIGN =
  /^(ANTHROPIC_|OPENAI_|OTEL_TRACES_SAMPLER$|OTEL_BSP_|POSTERN_WRITE_|POSTERN_TEST_(FULL|ONCE)$|POSTERN_FUZZ_SEED$|POSTERN_PICTURES$|DOCS_(BASE|SOURCE)$|TEST_DATABASE_URL$|HTTP_PROXY$|NO_COLOR$|NODE_EXTRA_CA_CERTS$|CERT_HAS_|UND_ERR_|EGRESS_PROXY$|FORBIDDEN_ADDRESS$|NODE_OPTIONS$|NODE_COMPILE_CACHE$|APP_[A-Z]+$|POSTERN_URL$|POSTERN_ADMIN_TOKEN(_FILE)?$)/;

it.each(all)('%s names only settings that exist', (page) => {
  const known = new Set(
    [...read('.env.example').matchAll(/^#([A-Z][A-Z0-9_]*)=/gm)].map(([, name]) => name!),
  );
  const named = found(/`([A-Z]+(?:_[A-Z]+)+)(?:=[^`]*)?`/g, page);
  const unknown = named.filter((name) => !FOREIGN.test(name) && !known.has(name.replace(/_FILE$/, '')));
  expect(unknown).toEqual([]);
});

it.each(all)('%s has only error codes that exist, where it names one with its status', (page) => {
  const codes: readonly string[] = CODES;
  const named = found(/\b[45]\d\d `([a-z_]+)`/g, page);
  expect(named.filter((name) => !codes.includes(name))).toEqual([]);
});

it('errors.md says for every code what to do', () => {
  const advice = /## What to do\n([^]*?)\n## /.exec(read('docs/reference/errors.md'))![1]!;
  expect(CODES.filter((code) => !advice.includes(`\`${code}\``))).toEqual([]);
});

it('headers-and-bodies.md has every header that the gateway reads or adds under a name of its own', () => {
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
  const names = sources
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) =>
      found(/'((?:x-gateway|x-should|idempotency|idempotent)-[a-z-]+)'/gi, join('src', file)),
    );
  expect(names).toContain('x-gateway-error');
  const [, section] = /## Headers of Postern\n([^]*?)\n## /.exec(
    read('docs/reference/headers-and-bodies.md'),
  )!;
  const listed = section!.toLowerCase();
  expect(names.filter((name) => !listed.includes(`\`${name.toLowerCase()}\``))).toEqual([]);
});

describe('the command line', () => {
  let known: CommandHelp[];
  beforeAll(async () => {
    known = await commands();
  });

  /** Each `postern …` of a page: in code, or in a line of a fenced block. */
  function uses(page: string): string[] {
    const text = read(page);
    const inline = [...text.matchAll(/`postern ([^`\n]+)`/g)].map(([, use]) => use!);
    const lines = fences(text)
      .filter(({ language }) => ['', 'sh', 'text'].includes(language))
      .flatMap(({ code }) => [...code.matchAll(/(?:^|[$(&;|] *|-- )postern ((?:[a-z]|--).*)$/gm)])
      .map(([, use]) => use!);
    // Another program follows a pipe.
    return [...inline, ...lines].map((use) => use.split(' | ')[0]!);
  }

  function isKnown(use: string): boolean {
    const words = use.replace(/["'`]/g, '').split(/[\s)]+/);
    let command: CommandHelp | undefined;
    for (let i = 0; i <= words.length; i++)
      command = known.find(({ path }) => path.join(' ') === words.slice(0, i).join(' ')) ?? command;
    const { path } = command!;
    // A word that is no command of a group is an unknown command; a group may have options of its own.
    const isGroup = known.some(
      (other) => other.path.length > path.length && path.every((word, i) => word === other.path[i]),
    );
    const next = words[path.length];
    if (path.length === 0 || (isGroup && next !== undefined && !next.startsWith('--'))) return false;
    const options = words.filter((word) => /^--[a-z]/.test(word)).map((word) => word.split('=')[0]!);
    return options.every((option) => option === '--help' || command!.options.includes(option));
  }

  it.each(all)('has every command and option that %s shows', (page) => {
    expect(uses(page).filter((use) => !isKnown(use))).toEqual([]);
  });

  it('is shown at all', () => {
    expect(all.flatMap(uses).length).toBeGreaterThan(40);
  });
});
