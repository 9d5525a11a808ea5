import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const test = join(__dirname, '..');
const { tierOf } = (await import(join(test, '../scripts/tiers.mjs'))) as {
  tierOf: (path: string) => string | undefined;
};

// The files that one worker runs share what they import: a hook in such a module would belong to the first file alone.
it('has hooks and tests in test files only; what they share registers with afterFile', () => {
  const shared = readdirSync(test, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.ts') && tierOf(path) === undefined,
  );
  const hook = /^(beforeAll|afterAll|beforeEach|afterEach|describe|it|test|jest)\b[.(]/m;
  expect(shared.filter((path) => hook.test(readFileSync(join(test, path), 'utf8')))).toEqual([]);
  expect(shared.length).toBeGreaterThan(10);
});
