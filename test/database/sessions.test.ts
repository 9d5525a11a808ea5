import pg from 'pg';
import { DataSource } from 'typeorm';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { GatewayClient } from '../../src/database/gateway-client.js';
import { Repricer } from '../../src/pricing/repricer.service.js';
import { UsageRollup } from '../../src/usage/usage-rollup.service.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { Wire } from '../support/wire.js';

/** What the server would run a session with. */
async function setInDatabase(database: TestDatabase, settings: Record<string, string>): Promise<void> {
  const name = new URL(database.url).pathname.slice(1);
  for (const [setting, value] of Object.entries(settings))
    await database.query(`ALTER DATABASE ${name} SET ${setting} = ${value}`);
}

const SESSION = {
  jit: 'off',
  synchronous_commit: 'on',
  idle_in_transaction_session_timeout: '10s',
  tcp_keepalives_idle: '10',
  tcp_keepalives_interval: '1',
  tcp_keepalives_count: '10',
  tcp_user_timeout: '30000',
};

const OTHERS: Record<string, Partial<typeof SESSION>> = {
  'postern-migrate': { idle_in_transaction_session_timeout: '1min' },
  // In its transaction, which is rolled back with the session.
  'postern-export': { idle_in_transaction_session_timeout: '1min' },
};

const READ = `SELECT current_setting('application_name') AS application, ${Object.keys(SESSION)
  .map((name) => `current_setting('${name}') AS ${name}`)
  .join(', ')}`;

type Seen = Map<string, (typeof SESSION)[]>;

/** Notes the settings of every session of this process, by its name, before it ends. */
function watchSessions(): Seen {
  const seen: Seen = new Map();
  const own = Object.getOwnPropertyDescriptor(pg.Client.prototype, 'end')!;
  const end = own.value as (this: pg.Client) => Promise<void>;
  async function look(client: pg.Client): Promise<void> {
    const { rows } = await client.query<typeof SESSION & { application: string }>(READ);
    const { application, ...settings } = rows[0]!;
    if (application.startsWith('postern'))
      seen.set(application, [...(seen.get(application) ?? []), settings]);
  }
  jest.spyOn(pg.Client.prototype, 'end').mockImplementation(function (this: pg.Client, done?: () => void) {
    // One whose connection is gone, or that Postgres does not answer, ends all the same.
    const ended = look(this)
      .catch(() => {})
      .then(() => end.call(this));
    return done === undefined ? ended : void ended.then(done);
  } as typeof pg.Client.prototype.end);
  return seen;
}

afterEach(() => jest.restoreAllMocks());

it('every session of a gateway has the settings that its promises need, whatever the database is set to', async () => {
  const seen = watchSessions();
  const database = await createDatabase();
  await setInDatabase(database, { jit: 'on', synchronous_commit: 'off', tcp_keepalives_idle: '7200' });
  const wire = await Wire.start({
    DATABASE_URL: database.url,
    MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  });
  const { gateway } = wire;
  const key = await gateway.createKey({
    endpoints: 'all',
    idempotency: 'replay',
    limits: { requests_per_minute: 100 },
  });
  const reply = await wire.send(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nIdempotency-Key: once\r\n` +
      'Content-Length: 2\r\n\r\n{}',
  );
  expect(reply[0]!.status).toBe(200);
  await eventually(async () => (await database.query('SELECT 1 FROM request_log')).length === 1);
  await gateway.admin('GET', '/usage');
  const exported = await fetch(`${gateway.url}/admin/v1/requests/export?format=csv`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect((await exported.text()).split('\n')).toHaveLength(3);
  await gateway.gateway.app.get(UsageRollup).run();
  await gateway.gateway.app.get(Repricer).exclusively(() => Promise.resolve());
  await gateway.admin('POST', '/sinks', {
    name: 'sink',
    kind: 'http',
    url: 'http://127.0.0.1:9/',
    secret: null,
    target: null,
  });
  const isSending = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'postern-sinks'`;
  await eventually(async () => (await database.query(isSending)).length > 0);
  const names = [
    '',
    '-changes/2',
    '-export',
    '-idempotency',
    '-limits',
    '-log',
    '-lookups',
    '-migrate',
    '-partitions',
  ];
  names.push('-prices', '-reader', '-sinks', '-start', '-usage');
  await wire.stop();
  // A stop does not wait long for a session's end.
  await eventually(() => names.every((name) => seen.has(`postern${name}`)));
  await database.drop();

  // What one replica does at a time begins after some seconds: only a slow test sees it.
  const always = [...seen.keys()].filter((name) => name !== 'postern-jobs');
  expect(always.sort()).toEqual(names.map((name) => `postern${name}`));
  for (const [application, sessions] of seen) {
    for (const settings of sessions)
      expect({ application, ...settings }).toEqual({ application, ...SESSION, ...OTHERS[application] });
  }
});

describe('synchronous_commit', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database.drop());

  it.each([
    ['off', 'on'],
    ['local', 'on'],
    ['remote_write', 'on'],
    ['on', 'on'],
    ['remote_apply', 'remote_apply'],
  ])('is %s in the database: sessions of the gateway have %s', async (stored, used) => {
    await setInDatabase(database, { synchronous_commit: stored });
    const client = new GatewayClient({ connectionString: database.url });
    const source = new DataSource(dataSourceOptions(database.url, { applicationName: 'test', poolSize: 1 }));
    try {
      await client.connect();
      expect((await client.query('SHOW synchronous_commit')).rows).toEqual([{ synchronous_commit: used }]);
      await source.initialize();
      expect(await source.query('SHOW synchronous_commit')).toEqual([{ synchronous_commit: used }]);
    } finally {
      await client.end();
      if (source.isInitialized) await source.destroy();
    }
  });
});
