import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';

const read = (name: string) => readFileSync(join(__dirname, '../..', name), 'utf8');

interface Step {
  name?: string;
  run?: string;
  if?: string;
}
interface Workflow {
  on: object;
  permissions: object;
  jobs: Record<string, { env: Record<string, string>; steps: Step[] }>;
}

describe('the workflow of a release', () => {
  const workflow = parse(read('.github/workflows/release.yml')) as Workflow;
  const { env, steps } = workflow.jobs.release!;
  const publishes = steps.filter(({ run = '' }) => /\b(?:publish|push|login)\b/.test(run));

  it('runs for tags alone, and may change nothing in the repository', () => {
    expect(workflow.on).toEqual({ push: { tags: ['v*'] } });
    expect(workflow.permissions).toEqual({ contents: 'read' });
    expect(Object.keys(workflow.jobs)).toEqual(['release']);
  });

  it('publishes nothing where its secrets are not set', () => {
    expect(publishes.map(({ name }) => name)).toEqual([
      'Publish the package',
      'Publish the image',
      'Publish the chart',
    ]);
    for (const { if: condition = '', run = '' } of publishes) {
      const asked = [...condition.matchAll(/env\.([A-Z_]+) != ''/g)].map(([, name]) => name!);
      expect(condition).toBe(asked.map((name) => `env.${name} != ''`).join(' && '));
      expect(asked.length).toBe(2);
      for (const name of asked) {
        expect(env[name]).toBe(`\${{ secrets.${name} }}`);
        expect(run).toContain(name);
      }
    }
  });

  it('publishes only what the dry run has built and checked, after it', () => {
    const at = steps.findIndex(({ run }) => run === 'npm run release -- --dry-run');
    expect(at).toBeGreaterThan(0);
    expect(steps.indexOf(publishes[0]!)).toBeGreaterThan(at);
  });
});

it('scripts of package.json ask for no package before they have installed them: a fresh clone has none', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const names = Object.values(scripts).flatMap((script) => script.match(/scripts\/[\w-]+\.mjs/g) ?? []);
  expect(names).toContain('scripts/release.mjs');
  const asked = new Set<string>();
  const seen = new Set<string>();
  const follow = (path: string) => {
    if (seen.has(path)) return;
    seen.add(path);
    for (const [, name] of read(path).matchAll(/^(?:import|export) (?:[^'";=]* from )?'([^']+)';$/gm))
      if (name!.startsWith('.')) follow(join(dirname(path), name!));
      else if (!name!.startsWith('node:')) asked.add(`${path}: ${name}`);
  };
  names.forEach(follow);
  expect(seen).toContain('scripts/release/image.mjs');
  expect([...asked]).toEqual([]);
});
