import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { read, ROOT } from './pages.js';

const MODULES = 'docs/develop/modules.md';
/** Shown on another page. */
const PAGES: Record<string, string> = { 'own-module.test.ts': 'docs/develop/testing.md' };
const EXAMPLES = 'test/example';

/** Files of the examples, without the tests of the first two: they show nothing that a module needs. */
const files = readdirSync(join(ROOT, EXAMPLES), { recursive: true, encoding: 'utf8' }).filter(
  (name) =>
    name.endsWith('.ts') && (!name.endsWith('.test.ts') || name === 'override.test.ts' || name in PAGES),
);

it('finds the examples', () => {
  expect(files.length).toBeGreaterThan(7);
});

/** As in an application, where migrations have a folder of their own; internals are for a clone. */
const shown = (name: string) => {
  const text = read(join(EXAMPLES, name))
    .replace(/(?:\.\.\/)+src\/testing\/index\.js/, 'postern/testing')
    .replace('../../../src/index.js', 'postern')
    .replaceAll('../../../src/', '../')
    .replace(/'\.\/(?=\d{13}-)/, "'../migrations/");
  // The names of shorter files may fit on one line.
  const oxfmt = [join(ROOT, 'node_modules/oxfmt/bin/oxfmt'), '--stdin-filepath', join('src', name)];
  return execFileSync(process.execPath, oxfmt, { cwd: ROOT, input: text, encoding: 'utf8' });
};

it.each(files)('a page shows %s, formatted as the linter wants it', (name) => {
  expect(read(PAGES[name] ?? MODULES)).toContain(`\`\`\`ts\n${shown(name)}\`\`\``);
});

it('the recipes import of the gateway only postern, but for a command and what stands in for an internal', () => {
  const internal = files.filter((name) =>
    /from '(?:\.\.\/)+src\/(?!(?:testing\/)?index\.js')/.test(read(join(EXAMPLES, name))),
  );
  expect(internal).toEqual([join('quotas', 'quotas.command.ts'), 'override.test.ts'].sort());
});
