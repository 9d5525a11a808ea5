import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadEnv } from '../../src/config/env.js';
import { envSchema, SECRET_VARIABLES } from '../../src/config/env-schema.js';

const root = join(__dirname, '../..');
const unit = readFileSync(join(root, 'deploy/postern.service'), 'utf8');
const values = (name: string) =>
  [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value!);

describe('deploy/postern.service', () => {
  it('runs what start:prod runs', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    const started = scripts['start:prod']!.replace('exec node', '/usr/bin/node').replace(
      'dist/',
      '/opt/postern/dist/',
    );
    expect(values('ExecStart')).toEqual([started]);
  });

  it('sets only what is in the schema, each secret from a credential that is loaded', () => {
    const set = values('Environment').flatMap((line) =>
      line.split(' ').map((pair) => pair.split('=') as [string, string]),
    );
    const loaded = values('LoadCredential').map((line) => line.split(':')[0]);
    for (const [name, value] of set) {
      const secret = SECRET_VARIABLES.find((variable) => `${variable}_FILE` === name);
      if (secret !== undefined) expect(loaded).toContain(value.replace('%d/', ''));
      else expect(Object.keys(envSchema.shape)).toContain(name);
    }
    expect(set).toContainEqual(['DATA_DIR', `/var/lib/${values('StateDirectory')[0]}`]);
  });

  it('waits longer for the end than the gateway takes by default', () => {
    const { shutdownDelayMs, shutdownGraceMs } = loadEnv({});
    // 12 s: what follows the grace when Postgres hangs.
    expect(Number(values('TimeoutStopSec')[0]) * 1000).toBeGreaterThan(
      shutdownDelayMs + shutdownGraceMs + 12_000,
    );
  });

  const analyze = spawnSync('systemd-analyze', ['--version']).status === 0;
  (analyze ? it : it.skip)(
    'is a unit that systemd understands (skipped where there is no systemd-analyze)',
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'postern-unit-'));
      const file = join(folder, 'postern.service');
      // The program must exist for the check.
      const program = ['/bin/true', '/usr/bin/true'].find((path) => existsSync(path))!;
      writeFileSync(file, unit.replace('/usr/bin/node', program));
      const { status, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
      rmSync(folder, { recursive: true });
      const own = stderr.split('\n').filter((line) => line.includes('postern.service'));
      expect([status, own]).toEqual([0, []]);
    },
  );
});
