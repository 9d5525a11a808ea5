import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { loadEnv } from '../../src/config/env.js';

const script = join(__dirname, '../../scripts/init-env.mjs');

describe('npm run init:env', () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'postern-init-'))));
  afterEach(() => rmSync(folder, { recursive: true }));
  const run = () => spawnSync(process.execPath, [script], { cwd: folder, encoding: 'utf8' });

  it('writes secrets that the schema accepts, for their owner only, and never shows them', () => {
    const { status, stdout, stderr } = run();
    expect([status, stderr]).toEqual([0, '']);
    const path = join(folder, '.env');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const written = parseEnv(readFileSync(path, 'utf8'));
    const { POSTGRES_PASSWORD: password, ADMIN_TOKEN: admin, MASTER_KEY: master } = written;
    const env = loadEnv(
      { NODE_ENV: 'production', DATABASE_URL: `postgres://postern:${password}@db/postern` },
      path,
    );
    expect(env.adminToken).toBe(admin);
    expect(env.masterKey).toHaveLength(32);
    expect(new URL(env.databaseUrl ?? '').password).toBe(password);
    for (const secret of [password, admin, master]) expect(stdout).not.toContain(secret);
  });

  it('takes over the secrets that a start without it has made: what they seal and open stays so', () => {
    mkdirSync(join(folder, 'data/secrets'), { recursive: true });
    const kept = { 'admin-token': 'a'.repeat(32), 'master-key': Buffer.alloc(32, 1).toString('base64') };
    for (const [name, secret] of Object.entries(kept))
      writeFileSync(join(folder, 'data/secrets', name), secret);
    const { status, stdout } = run();
    expect(status).toBe(0);
    expect(stdout).toContain('Taken over from data/secrets: admin-token, master-key.');
    const written = parseEnv(readFileSync(join(folder, '.env'), 'utf8'));
    expect(written).toMatchObject({ ADMIN_TOKEN: kept['admin-token'], MASTER_KEY: kept['master-key'] });
  });

  it('makes new secrets every time', () => {
    run();
    const first = parseEnv(readFileSync(join(folder, '.env'), 'utf8'));
    rmSync(join(folder, '.env'));
    run();
    const second = parseEnv(readFileSync(join(folder, '.env'), 'utf8'));
    for (const name of ['ADMIN_TOKEN', 'MASTER_KEY', 'POSTGRES_PASSWORD']) {
      expect(second[name]).not.toBe(first[name]);
    }
  });

  it('leaves an existing .env alone and says what to do', () => {
    writeFileSync(join(folder, '.env'), 'PORT=1\n');
    const { status, stderr } = run();
    expect(status).toBe(1);
    expect(stderr).toMatch(/exists and was left alone\. Rename or remove it first/);
    expect(readFileSync(join(folder, '.env'), 'utf8')).toBe('PORT=1\n');
  });
});
