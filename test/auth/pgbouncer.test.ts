import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually, soon } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { unusedPort } from '../support/unused-port.js';

// A pooler in transaction mode takes LISTEN without a word and delivers nothing: only the polled counter is left.

/** As the production guide shows it. */
const IGNORED = /`(ignore_startup_parameters = [^`]+)`/.exec(
  readFileSync('docs/guides/production.md', 'utf8'),
)![1]!;

const installed = (() => {
  try {
    return execFileSync('sh', ['-c', 'command -v pgbouncer || ls /usr/sbin/pgbouncer']).toString().trim();
  } catch {
    return null;
  }
})();

async function statusOf(gateway: TestGateway, key: string, path = '/v1/models'): Promise<number> {
  const response = await fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${key}` } });
  await response.arrayBuffer();
  return response.status;
}

if (installed === null) {
  it('pgbouncer is not installed: nothing was tried behind a pooler', () => {
    process.stdout.write('NOT TRIED: pgbouncer is not installed\n');
  });
} else {
  let database: TestDatabase;
  let folder: string;
  let pooler: ChildProcess;
  let gateway: TestGateway;

  beforeAll(async () => {
    database = await createDatabase();
    const real = new URL(database.url);
    const port = await unusedPort();
    folder = await mkdtemp(join(tmpdir(), 'postern-pgbouncer-'));
    await chmod(folder, 0o755);
    const name = real.pathname.slice(1);
    await writeFile(
      join(folder, 'pgbouncer.ini'),
      `[databases]
${name} = host=${real.hostname} port=${real.port || 5432} dbname=${name} user=${real.username} password=${decodeURIComponent(real.password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 5
${IGNORED}
`,
    );
    const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
    pooler = spawn(installed, [join(folder, 'pgbouncer.ini')], { stdio: 'ignore', ...account });
    const through = new URL(database.url);
    through.host = `127.0.0.1:${port}`;
    await eventually(async () => {
      const client = new pg.Client({ connectionString: through.href });
      client.on('error', () => {});
      try {
        await client.connect();
        await client.query('SELECT 1');
        return true;
      } catch {
        return false;
      } finally {
        await client.end().catch(() => {});
      }
    });
    gateway = await startTestGateway({ DATABASE_URL: through.href, MIGRATE: 'off' }, database);
    // On a busy machine the first attempt at Postgres may fail; the gateway goes on trying.
    await eventually(() => gateway.key !== '');
  });
  afterAll(async () => {
    await gateway.stop();
    pooler.kill('SIGKILL');
    await database.drop();
    await rm(folder, { recursive: true, force: true });
  });

  it('a revocation gets through a pooler that swallows notifications', async () => {
    // A known key gets as far as the missing provider.
    expect(await statusOf(gateway, gateway.key)).toBe(503);
    expect(await statusOf(gateway, ADMIN_TOKEN, '/admin/v1/requests/export')).toBe(200);
    await database.query('UPDATE gateway_key SET revoked_at = now()');
    await soon(async () => (await statusOf(gateway, gateway.key)) === 401, 350);
  });
}
