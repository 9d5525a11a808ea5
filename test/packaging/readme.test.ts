import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(__dirname, '../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const readme = read('README.md');

function found(pattern: RegExp, text = readme): string[] {
  return [...new Set([...text.matchAll(pattern)].map(([, name]) => name!))].sort();
}

// What the README names must exist: nobody reads it again with each change.
it('names only npm scripts that exist', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const named = found(/npm run (?:--silent )?([a-z][a-z:-]*)/g);
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
  expect(named.length).toBeGreaterThan(5);
});

it('names only settings that exist', () => {
  const known = new Set(found(/^#?([A-Z_]+)=/gm, read('.env.example')));
  const named = found(/`([A-Z]+(?:_[A-Z]+)+)`/g);
  // What an SDK reads is not ours to have.
  const ours = named.filter((name) => !/^(ANTHROPIC_|OTEL_TRACES_SAMPLER$)/.test(name));
  expect(ours.filter((name) => !known.has(name))).toEqual([]);
  expect(ours.length).toBeGreaterThan(10);
});

it('names only error codes that exist', () => {
  const known = read('src/errors/gateway-error.ts');
  const [table] = /\| status +\| code[^]*?\n\n/.exec(readme)!;
  const named = found(/`([a-z]+(?:_[a-z]+)+)`/g, table);
  expect(named.filter((code) => !known.includes(`'${code}'`))).toEqual([]);
  expect(named.length).toBeGreaterThan(10);
});
