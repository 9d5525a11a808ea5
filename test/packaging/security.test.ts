import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(__dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const security = read('SECURITY.md');
const manifest = JSON.parse(read('package.json')) as {
  version: string;
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
  optionalDependencies: Record<string, string>;
};

/** Of a start from a clone. */
const BUILD_TOOLS = ['@swc/core', 'rolldown'];

it('gives every class of threats tests, and a reason for every dependency that is shipped', () => {
  const classes = ['Keys', 'Framing', 'Target', 'Headers', 'Provider', 'Load', 'Failures'];
  for (const name of [...classes, 'Sign-ins and identity tokens']) {
    const section = security.split(`\n### ${name}\n`)[1]!.split('\n##', 1)[0]!;
    const lines = section.split('\n').filter((line) => line.startsWith('- '));
    expect(lines.filter((line) => !/\]\(test\/.*\.ts\)/.test(line))).toEqual([]);
    expect(lines).not.toEqual([]);
  }
  const { dependencies, peerDependencies, optionalDependencies } = manifest;
  const shipped = { ...dependencies, ...peerDependencies, ...optionalDependencies };
  const [, list] = security.split('## Dependencies');
  const reasons = [...list!.matchAll(/^- `(\S+)`: \S.*$/gm)].map(([, name]) => name!);
  expect(reasons.sort()).toEqual(
    Object.keys(shipped)
      .filter((name) => !BUILD_TOOLS.includes(name))
      .sort(),
  );
});

it('has an entry for this version in CHANGELOG.md', () => {
  expect(read('CHANGELOG.md')).toMatch(
    new RegExp(`^## \\[${manifest.version}\\] - (unreleased|\\d{4}-\\d\\d-\\d\\d)$`, 'm'),
  );
});
