import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import pg from 'pg';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { Workplace } from '../support/workplace.js';

const SETTINGS = {
  MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  ADMIN_TOKEN: 'an-admin-token-of-a-test',
};
const SECRET = 'sk-stored-0123456789';

let provider: RawProvider;
const workplaces: Workplace[] = [];
const databases: TestDatabase[] = [];

beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', ['Content-Type: application/json'], '{"choices":[]}'));
  });
});
afterAll(async () => {
  for (const workplace of workplaces) await workplace.remove();
  await provider.stop();
  for (const database of databases) await database.drop();
});

async function place(): Promise<Workplace> {
  const workplace = await Workplace.make();
  workplaces.push(workplace);
  return workplace;
}

async function database(options = {}): Promise<TestDatabase> {
  const made = await createDatabase(options);
  databases.push(made);
  return made;
}

async function admin(
  url: string,
  method: string,
  path: string,
  body?: object,
): Promise<Record<string, unknown>> {
  const res = await fetch(`${url}/admin/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${SETTINGS.ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  expect(res.ok).toBe(true);
  return (await res.json()) as Record<string, unknown>;
}

const once = (url: string, key: string) =>
  fetch(`${url}/p/stored/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'idempotency-key': 'order-4711' },
    body: '{}',
  });

/** Null where pg_dump can read this server; else why not. It reads no server newer than itself. */
async function pgDumpMissing(): Promise<string | null> {
  const { stdout } = spawnSync('pg_dump', ['--version'], { encoding: 'utf8' });
  const mine = Number(/(\d+)\./.exec(stdout ?? '')?.[1]);
  if (Number.isNaN(mine)) return 'there is no pg_dump';
  const client = new pg.Client({ connectionString: process.env.POSTERN_TEST_SERVER });
  await client.connect();
  const { rows } = await client.query<{ v: string }>(
    `SELECT current_setting('server_version_num')::int / 10000 AS v`,
  );
  await client.end();
  return mine >= Number(rows[0]!.v) ? null : `pg_dump is ${mine}, the server ${rows[0]!.v}`;
}

function run(command: string, ...args: string[]): Buffer {
  const { status, stderr, stdout } = spawnSync(command, args, { maxBuffer: 1e9 });
  if (status !== 0) throw new Error(`${command}: ${stderr.toString()}`);
  return stdout;
}

it('serves on from a dump, taken while the gateway ran and restored into another database', async () => {
  const missing = await pgDumpMissing();
  if (missing !== null) {
    process.stdout.write(`not tried here: ${missing}\n`);
    return;
  }
  const before = await database();
  const workplace = await place();
  const gateway = workplace.gateway({ ...SETTINGS, DATABASE_URL: before.url });
  const url = await gateway.ready();
  await admin(url, 'POST', 'providers', { name: 'stored', url: provider.url, secret: SECRET });
  const { key, id } = (await admin(url, 'POST', 'keys', {
    team: 'default',
    name: 'k',
    idempotency: 'replay',
  })) as {
    key: string;
    id: string;
  };
  expect((await once(url, key)).status).toBe(200);
  await eventually(async () => (await before.query('SELECT FROM request_log')).length === 1);
  await eventually(
    async () => (await before.query('SELECT FROM idempotency_record WHERE answer IS NOT NULL')).length === 1,
  );
  const file = join(workplace.folder, 'postern.dump');
  run('pg_dump', '--format=custom', '--file', file, before.url);
  // What happens after the dump is not in it: revoked then is good again. The runbook says so.
  await admin(url, 'POST', `keys/${id}/revoke`);
  await gateway.stop();

  const after = await database({ empty: true });
  run('pg_restore', '--no-owner', '--exit-on-error', '--single-transaction', '--dbname', after.url, file);
  const restored = (await place()).gateway({ ...SETTINGS, DATABASE_URL: after.url });
  const again = await restored.ready();
  const repeat = await once(again, key);
  expect([repeat.status, repeat.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
  const calls = await fetch(`${again}/p/stored/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  expect(calls.status).toBe(200);
  expect(provider.requests.at(-1)!.headers).toContainEqual(['Authorization', `Bearer ${SECRET}`]);
  expect(await restored.stop()).toEqual({ code: 0, signal: null });
  const tables = [
    'team',
    'gateway_key',
    'gateway_key_secret',
    'provider',
    'audit_log',
    'idempotency_record',
    'migrations',
  ];
  for (const table of tables) {
    const count = (of: TestDatabase) => of.query<{ n: string }>(`SELECT count(*) AS n FROM ${table}`);
    const [was, is] = [await count(before), await count(after)];
    // The revocation.
    const extra = table === 'audit_log' ? 1 : 0;
    expect([table, Number(is[0]!.n) + extra]).toEqual([table, Number(was[0]!.n)]);
  }
  const outcomes = await after.query<{ outcome: string }>(
    'SELECT outcome FROM request_log ORDER BY started_at',
  );
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(['completed', 'replayed', 'completed']);
});

it('serves on from a copy of DATA_DIR when Postgres is the embedded one', async () => {
  const workplace = await place();
  const gateway = workplace.gateway({ PROVIDER_URL: provider.url });
  const url = await gateway.ready();
  const key = await gateway.firstKey();
  const call = (to: string) => fetch(`${to}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  expect((await call(url)).status).toBe(200);
  await gateway.stop();
  const other = await place();
  run('cp', '-a', workplace.dataDir, other.dataDir);
  const restored = other.gateway({ PROVIDER_URL: provider.url });
  expect((await call(await restored.ready())).status).toBe(200);
  expect(await restored.stop()).toEqual({ code: 0, signal: null });
});
