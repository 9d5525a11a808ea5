import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

const src = join(__dirname, '../../src');
const DECISION = 'policies-by-url/decision';

/** Names that a file imports, or exports again, by the file that they are from: relative to src, or a package. */
function named(file: string, keyword: 'import' | 'export'): { from: string; name: string }[] {
  const text = readFileSync(join(src, file), 'utf8');
  const statement = new RegExp(`^${keyword} (?:type )?\\{([^}]*)\\} from '([^']+)';`, 'gm');
  return [...text.matchAll(statement)].flatMap(([, names, from]) =>
    names!
      .split(',')
      .map((name) => name.trim().replace(/^type /, ''))
      .filter((name) => name !== '')
      .map((name) => ({
        from: from!.startsWith('.') ? posix.join(posix.dirname(file), from!) : from!,
        name,
      })),
  );
}

/** So that everybody could write it as a module of their own. */
it('the policy by URL stands on public names alone', () => {
  const files = readdirSync(join(src, DECISION)).map((name) => `${DECISION}/${name}`);
  const used = files.flatMap((file) => named(file, 'import').map((one) => ({ file, ...one })));
  const isPublic = new Set(named('index.ts', 'export').map(({ from, name }) => `${from} ${name}`));
  expect(used.filter(({ name }) => name === 'CallPolicy')).toHaveLength(1);
  const others = used.filter(
    ({ from, name }) =>
      !from.startsWith(`${DECISION}/`) && from.includes('/') && !isPublic.has(`${from} ${name}`),
  );
  expect(others).toEqual([]);
  // No import of another form, and no import of a package that modules may not have.
  const statements = files.flatMap(
    (file) => readFileSync(join(src, file), 'utf8').match(/\bfrom '[^']+'/g) ?? [],
  );
  expect(statements).toHaveLength(new Set(used.map(({ file, from }) => `${file} ${from}`)).size);
  const packages = new Set(used.map(({ from }) => from).filter((from) => !from.includes('/')));
  expect([...packages].sort()).toEqual(['node:crypto', 'zod']);
});
