import { readdirSync } from 'node:fs';
import { join } from 'node:path';
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

it.each(files)('modules.md shows %s as it is', (name) => {
  const code = read(join(EXAMPLES, name)).replaceAll('../../../src/', '../');
  expect(read(PAGE)).toContain(`\`\`\`ts\n${code}\`\`\``);
});
