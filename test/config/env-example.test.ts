import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadEnv } from '../../src/config/env.js';
import { envSchema, SECRET_VARIABLES } from '../../src/config/env-schema.js';

const example = readFileSync(join(__dirname, '../../.env.example'), 'utf8');
const settings = [...example.matchAll(/^#?([A-Z][A-Z0-9_]*)=(.*)$/gm)].map(
  ([, name, value]) => [name, value] as const,
);

// Docker Compose's own, not read by the gateway.
const COMPOSE_ONLY = ['POSTGRES_PASSWORD', 'PUBLISH'];

describe('.env.example', () => {
  it('names exactly the variables of the schema, each once', () => {
    const names = settings.map(([name]) => name).sort();
    expect(names).toEqual([...Object.keys(envSchema.shape), ...COMPOSE_ONLY].sort());
  });

  it('sets nothing by itself', () => {
    expect(example).not.toMatch(/^[^#\s]/m);
  });

  it('shows the default of each', () => {
    expect(loadEnv(Object.fromEntries(settings) as NodeJS.ProcessEnv)).toEqual(loadEnv({}));
  });

  it('marks every secret, and nothing else, with S', () => {
    const marked = [...example.matchAll(/^# S\. .*\n(?:# .*\n)*#([A-Z_]+)=/gm)].map(([, name]) => name);
    expect(marked.sort()).toEqual([...SECRET_VARIABLES].sort());
  });
});
