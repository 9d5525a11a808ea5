import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { loadEnv } from '../../src/config/env.js';

interface Service {
  image: string;
  environment: Record<string, string>;
  env_file?: string;
  volumes: string[];
  ports?: string[];
  restart: string;
  stop_grace_period: string;
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test: string[] };
}

const read = (name: string) => readFileSync(join(__dirname, '../..', name), 'utf8');
const compose = parse(read('docker-compose.yml')) as {
  services: { gateway: Service; postgres: Service };
  volumes: Record<string, unknown>;
};
const { gateway, postgres } = compose.services;

// What Compose does with ${NAME}, ${NAME:-default} and ${NAME:?message} for this file.
const interpolate = (text: string, env: Record<string, string>) =>
  text.replace(/\$\{(\w+)(?::[-?]([^}]*))?\}/g, (_, name: string, rest?: string) => env[name] ?? rest ?? '');

describe('docker-compose.yml', () => {
  it('gives the gateway an environment that production accepts, with the secrets of init:env', () => {
    const secrets = { ADMIN_TOKEN: 'a'.repeat(43), MASTER_KEY: Buffer.alloc(32).toString('base64') };
    const set = Object.entries(gateway.environment).map(([name, value]) => [
      name,
      interpolate(value, { POSTGRES_PASSWORD: 'p4ss_-word' }),
    ]);
    const env = loadEnv({ ...secrets, ...(Object.fromEntries(set) as NodeJS.ProcessEnv) });
    expect(env.nodeEnv).toBe('production');
    expect(env.databaseUrl).toBe('postgres://postern:p4ss_-word@postgres:5432/postern');
    expect(gateway.env_file).toBe('.env');
  });

  it('rejects to start without a password instead of running with an empty one', () => {
    for (const value of [gateway.environment.DATABASE_URL, postgres.environment.POSTGRES_PASSWORD]) {
      expect(value).toMatch(/\$\{POSTGRES_PASSWORD:\?.+\}/);
    }
  });

  it('connects to the database and the user that Postgres makes', () => {
    const url = new URL(interpolate(gateway.environment.DATABASE_URL ?? '', { POSTGRES_PASSWORD: 'x' }));
    expect(url.username).toBe(postgres.environment.POSTGRES_USER);
    expect(url.pathname).toBe(`/${postgres.environment.POSTGRES_DB}`);
    expect(url.hostname in compose.services).toBe(true);
  });

  it('keeps the journal and the database in volumes', () => {
    expect(gateway.volumes).toEqual([`data:${gateway.environment.DATA_DIR}`]);
    // postgres:18 keeps its data below /var/lib/postgresql/18 and rejects a mount on the old .../data.
    expect(postgres.image).toBe('postgres:18');
    expect(postgres.volumes).toEqual(['postgres:/var/lib/postgresql']);
    expect(Object.keys(compose.volumes).sort()).toEqual(['data', 'postgres']);
  });

  it('waits for a Postgres that answers by TCP, restarts both, and publishes to this machine only', () => {
    expect(gateway.depends_on).toEqual({ postgres: { condition: 'service_healthy' } });
    expect(postgres.healthcheck?.test).toEqual(expect.arrayContaining(['pg_isready', '--host=127.0.0.1']));
    expect([gateway.restart, postgres.restart]).toEqual(['unless-stopped', 'unless-stopped']);
    const published = gateway.ports?.map((entry) => interpolate(entry, {}));
    expect(published).toEqual([`127.0.0.1:8080:${gateway.environment.PORT}`]);
  });

  it('allows more time to stop than the gateway takes', () => {
    const env = loadEnv({});
    const seconds = Number(/^(\d+)s$/.exec(gateway.stop_grace_period)?.[1]);
    expect(seconds * 1000).toBeGreaterThan(env.shutdownDelayMs + env.shutdownGraceMs);
  });
});
