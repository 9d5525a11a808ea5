import { generateKey } from '../../src/keys/key-secret.js';
import type { TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { runBuilt } from '../support/process.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { Site } from '../support/site.js';
import { TcpForwarder } from '../support/tcp-forwarder.js';
import type { Workplace } from '../support/workplace.js';

let site: Site;
let database: TestDatabase;
let workplace: Workplace;
let provider: RawProvider;

beforeEach(async () => {
  site = await Site.make({
    script: async ({ body, socket }) => {
      await body;
      socket.write(answer('200 OK', ['Content-Type: application/json'], '{"ok":true}'));
    },
    empty: true,
  });
  ({ database, workplace, provider } = site);
});
afterEach(() => site.remove());

const call = (url: string, key: string) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{"model":"m"}',
  });
const ready = async (url: string) => {
  const response = await fetch(`${url}/health/ready`);
  const { reasons } = (await response.json()) as { reasons: string[] };
  return { status: response.status, reasons };
};

it('starts without Postgres, says so, and comes to itself when Postgres does', async () => {
  const forwarder = await TcpForwarder.to(database.url);
  const gateway = workplace.gateway({ DATABASE_URL: forwarder.url, PROVIDER_URL: provider.url });
  const url = await gateway.listening();
  expect((await fetch(`${url}/health/live`)).status).toBe(200);
  expect(await ready(url)).toMatchObject({ status: 503, reasons: ['the database is not ready'] });
  const rejected = await call(url, generateKey());
  expect(rejected.status).toBe(503);
  expect(rejected.headers.get('x-gateway-error')).toBe('database_unavailable');
  expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThan(0);
  await gateway.process.until(
    /Postgres is not ready: .*(ECONNREFUSED|it has not responded yet).* Trying again until it is\./,
  );
  expect(gateway.process.stdout).toContain(`postern: listening on ${url}; waiting for Postgres\n`);
  expect(gateway.process.stdout).not.toMatch(/shown only once|ready on|no provider yet/);

  await forwarder.open();
  const key = await gateway.firstKey();
  expect(gateway.process.stdout).toContain(
    `postern: ready on ${url}\npostern: the admin token is in ${workplace.dataDir}/secrets/admin-token\n` +
      `postern: the console is on ${url}/console; sign in with the admin token\n`,
  );
  await eventually(async () => (await ready(url)).status === 200);
  const response = await call(url, key);
  expect([response.status, await response.text()]).toEqual([200, '{"ok":true}']);
  const id = response.headers.get('x-gateway-request-id');
  await eventually(async () => {
    const rows = await database.query('SELECT FROM request_log WHERE id = $1', [id]);
    return rows.length === 1;
  });
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  await forwarder.close();
});

it('exits when the Postgres that came turns out to be the wrong one', async () => {
  const forwarder = await TcpForwarder.to(database.url.replace(/[^/]+$/, 'no_such_database'));
  const gateway = workplace.gateway({ DATABASE_URL: forwarder.url });
  await gateway.listening();
  await forwarder.open();
  expect(await gateway.process.ended).toEqual({ code: 1, signal: null });
  expect(gateway.process.stderr).toMatch(/^postern: The database named by DATABASE_URL does not exist\./m);
  await forwarder.close();
});

it('leaves pending migrations alone with MIGRATE=off and goes on once somebody ran them', async () => {
  const settings = { DATABASE_URL: database.url, PROVIDER_URL: provider.url, MIGRATE: 'off' };
  const gateway = workplace.gateway(settings);
  const url = await gateway.listening();
  await gateway.process.until(/migrations are pending and MIGRATE=off; run "\S*postern migrate"/);
  await eventually(async () => (await ready(url)).reasons.some((why) => /migrations are pending/.test(why)));
  expect((await ready(url)).status).toBe(503);
  const tables = await database.query("SELECT FROM pg_tables WHERE tablename = 'request_log'");
  expect(tables).toEqual([]);

  const migrating = runBuilt('cli/start', ['migrate'], {
    cwd: workplace.folder,
    env: { ...settings, DATA_DIR: workplace.dataDir },
  });
  expect(await migrating.ended).toEqual({ code: 0, signal: null });
  const key = await gateway.firstKey();
  await eventually(async () => (await ready(url)).status === 200);
  expect((await call(url, key)).status).toBe(200);
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
});

it('does not name a console that is off', async () => {
  const gateway = workplace.gateway({
    DATABASE_URL: database.url,
    PROVIDER_URL: provider.url,
    CONSOLE: 'off',
  });
  await gateway.firstKey();
  expect(gateway.process.stdout).toContain('postern: the admin token is in ');
  expect(gateway.process.stdout).not.toContain('console');
});
