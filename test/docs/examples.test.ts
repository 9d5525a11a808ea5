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

/** What an application of one's own has another way: global modules, and the client of the admin API. */
const OTHERWISE =
  /^(LogConsumersModule|KeysModule|ObservabilityModule|RequestLogModule|path|action|TeamView)$/;

it('the recipes import nothing of the gateway that an application cannot import from postern', () => {
  const fields = read('src/admin/fields.schema.ts');
  const index = read('src/index.ts');
  const missing: string[] = [];
  for (const name of files.filter((name) => !name.endsWith('.test.ts')))
    for (const [, names, from] of read(join(EXAMPLES, name)).matchAll(
      /import (?:type )?\{([^}]*)\} from '\.\.\/\.\.\/\.\.\/src\/([^']*)'/g,
    ))
      for (const given of names!.split(',').map((one) => one.trim().replace(/^type /, ''))) {
        const where = from === 'admin/fields.schema.js' ? fields : index;
        const isThere = new RegExp(`\\b${given}\\b`).test(where);
        if (given !== '' && !isThere && !OTHERWISE.test(given)) missing.push(`${name}: ${given}`);
      }
  expect(missing).toEqual([]);
  expect(index).toContain('export * as fields ');
});
