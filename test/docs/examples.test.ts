import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { check, resolveConfig } from 'prettier';
import { read, ROOT } from './pages.js';

const PAGE = 'docs/develop/modules.md';
const EXAMPLES = 'test/example';

/** Files of the examples, without the tests of the first two: they show nothing that a module needs. */
const files = readdirSync(join(ROOT, EXAMPLES), { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.endsWith('.ts') && (!name.endsWith('.test.ts') || name === 'override.test.ts'),
);

it('finds the examples', () => {
  expect(files.length).toBeGreaterThan(7);
});

const shown = (name: string) => read(join(EXAMPLES, name)).replaceAll('../../../src/', '../');

it.each(files)('modules.md shows %s as it is', (name) => {
  expect(read(PAGE)).toContain(`\`\`\`ts\n${shown(name)}\`\`\``);
});

it.each(files)('the linter wants %s as it is, where the page puts it', async (name) => {
  const filepath = join(ROOT, 'src', name);
  expect(await check(shown(name), { ...(await resolveConfig(filepath)), filepath })).toBe(true);
});
