import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { check, resolveConfig } from 'prettier';
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

const shown = (name: string) => {
  const text = read(join(EXAMPLES, name)).replaceAll('../../../src/', '../');
  return name in PAGES ? text.replace('../../src/testing/index.js', 'postern/testing') : text;
};

it.each(files)('a page shows %s as it is', (name) => {
  expect(read(PAGES[name] ?? MODULES)).toContain(`\`\`\`ts\n${shown(name)}\`\`\``);
});

it.each(files)('the linter wants %s as it is, where the page puts it', async (name) => {
  const filepath = join(ROOT, 'src', name);
  expect(await check(shown(name), { ...(await resolveConfig(filepath)), filepath })).toBe(true);
});
