import { Logger } from '@nestjs/common';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { migrate } from '../../src/database/migrate.js';
import { MIGRATIONS } from '../../src/database/migrations.js';
import { LedgerService } from '../../src/limits/ledger/ledger.service.js';
import { Repricer } from '../../src/pricing/repricer.service.js';
import {
  createPartitions,
  DAY_MS,
  dayOf,
  listPartitions,
  tableName,
} from '../../src/request-log/partitions.js';
import { PartitionsService } from '../../src/request-log/partitions.service.js';
import { UsageRollup } from '../../src/usage/usage-rollup.service.js';
import { read } from '../docs/pages.js';
import { sendTo, setPrice, startUsageProvider } from '../limits/limited-gateway.js';
import { FakeSink } from '../sinks/fake-sink.js';
import { awayFromMidnight } from '../support/away-from-midnight.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import type { RawProvider } from '../support/raw-provider.js';

/* A gateway whose role has the rights that docs/guides/database-roles.md grants it, by exactly the SQL there. */

const statements = (page: string) => [...read(page).matchAll(/```sql\n([^]*?)```/g)].map(([, sql]) => sql!);
const [roles, grants, reports] = statements('docs/guides/database-roles.md') as [string, string, string];
const [reporter, locks] = statements('docs/guides/reports.md') as [string, string];
const CHAT = { model: 'm', max_tokens: 100, messages: [] };

let provider: RawProvider;
let problems: jest.SpyInstance[];
beforeAll(async () => {
  provider = await startUsageProvider({ input: 100, output: 100 });
  problems = (['warn', 'error', 'fatal'] as const).map((level) => jest.spyOn(Logger.prototype, level));
});
afterAll(async () => {
  await provider.stop();
  for (const spy of problems) spy.mockRestore();
});
const logged = () => problems.flatMap((spy) => spy.mock.calls.map(([text]) => String(text)));

/** A database with the roles of the guide, whose names are of the whole server. */
class Installation {
  private constructor(
    readonly database: TestDatabase,
    private readonly schema: string,
  ) {}

  static async make(schema: string, options = {}): Promise<Installation> {
    return new Installation(await createDatabase({ empty: true, ...options }), schema);
  }

  private get suffix(): string {
    return new URL(this.database.url).pathname.slice('/postern_test_'.length);
  }

  role(name: string): string {
    return `postern_${name}_${this.suffix}`;
  }

  /** Runs statements of a guide, with the names of this installation, as somebody who may do everything. */
  async run(sql: string): Promise<void> {
    const text = sql
      .replace(/\bpostern_(owner|gateway|reports)\b/g, (_, name: string) => this.role(name))
      .replace(/\bDATABASE postern\b/g, `DATABASE ${new URL(this.database.url).pathname.slice(1)}`)
      .replace(/\bSCHEMA (postern|public)\b/g, `SCHEMA ${this.schema}`)
      .replace(/search_path = postern\b/g, `search_path = ${this.schema}`);
    const client = await this.connect(this.database.url, `SET search_path = ${this.schema}`);
    await client.query(text).finally(() => client.end());
  }

  url(name: 'owner' | 'gateway' | 'reports'): string {
    const url = new URL(this.database.url);
    url.username = this.role(name);
    url.password = { owner: 'choose-one', gateway: 'choose-another', reports: 'choose-one' }[name];
    return url.href;
  }

  async connect(url: string, first = 'SELECT 1'): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(first);
    return client;
  }

  /** Runs one statement as a role. */
  async as<T extends object>(name: 'owner' | 'gateway' | 'reports', sql: string, values: unknown[] = []) {
    const client = await this.connect(this.url(name));
    try {
      return (await client.query<T>(sql, values)).rows;
    } finally {
      await client.end();
    }
  }

  /** The gateway, as the guide starts it. */
  async gateway(variables: Record<string, string> = {}): Promise<TestGateway> {
    const shared = {
      ...this.database,
      query: <T extends object>(sql: string, values?: unknown[]) => this.as<T>('owner', sql, values),
    };
    const env = {
      DATABASE_URL: this.url('gateway'),
      MIGRATE: 'off',
      PROVIDER_URL: provider.url,
      MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    };
    return startTestGateway({ ...env, ...variables }, shared);
  }

  async remove(): Promise<void> {
    await this.database.query(
      `DO $$ DECLARE name text; BEGIN
         FOR name IN SELECT rolname FROM pg_roles WHERE rolname LIKE 'postern\\_%\\_${this.suffix}' LOOP
           EXECUTE format('DROP OWNED BY %1$I CASCADE', name);
           EXECUTE format('DROP ROLE %I', name);
         END LOOP;
       END $$`,
    );
    await this.database.drop();
  }
}

describe('a new installation with the roles of the guide, in a schema of its own', () => {
  let postern: Installation;
  let gateway: TestGateway;
  beforeAll(async () => {
    postern = await Installation.make('postern');
    await postern.run(roles);
    expect(await migrate(postern.url('owner'))).not.toEqual([]);
    await postern.run(grants);
    await postern.run(reporter);
    await postern.run(reports);
    for (const role of ['gateway', 'owner'])
      await postern.run(locks.replace("TO postern'", `TO postern_${role}'`));
    gateway = await postern.gateway();
    await setPrice(gateway);
  });
  beforeEach(() => awayFromMidnight());
  afterAll(async () => {
    await gateway.stop();
    await postern.remove();
  });

  const send = (key: string, headers?: Record<string, string>) =>
    sendTo(gateway.url, key, CHAT, undefined, headers);

  it('has everything in that schema, and nothing that the gateway owns', async () => {
    const owners = await postern.as<{ place: string }>(
      'owner',
      `SELECT DISTINCT n.nspname || ' ' || pg_get_userbyid(c.relowner) AS place
       FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
       WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'`,
    );
    expect(owners).toEqual([{ place: `postern ${postern.role('owner')}` }]);
  });

  it('forwards calls, with rows, limits, budgets, idempotency and the cache', async () => {
    const key = await gateway.createKey({
      budgets: [{ usd: '5', period: 'day' }],
      limits: { requests_per_minute: 100, concurrent_requests: 10 },
      each_end_user: { requests_per_minute: 50 },
      idempotency: 'replay',
    });
    expect((await send(key, { 'idempotency-key': 'once', 'x-gateway-user': 'ann' })).status).toBe(200);
    await eventually(
      async () =>
        (await send(key, { 'idempotency-key': 'once' })).headers.get('idempotent-replayed') === 'true',
    );
    const cached = await gateway.createKey({ cache: { ttl_seconds: 60 } });
    await eventually(async () => (await send(cached)).headers.get('x-gateway-cache') === 'hit');
    const [rule] = await eventually(async () => {
      const { data } = await gateway.admin<{ data: { id: string; used: string; resource: string }[] }>(
        'GET',
        '/limits?state=ok',
      );
      const budgets = data.filter(({ resource, used }) => resource === 'usd' && Number(used) > 0);
      return budgets.length > 0 && budgets;
    });
    await gateway.admin('POST', `/limits/${rule!.id}/reset`, { reason: 'a test' });
    await gateway.gateway.app.get(LedgerService).sweep();
  });

  it('revokes keys, adds up usage, corrects costs, and shows its system, audit log and exports', async () => {
    const { id, key } = await gateway.admin<{ id: string; key: string }>('POST', '/keys', {
      team: 'default',
      name: 'revoked',
    });
    expect((await send(key)).status).toBe(200);
    await gateway.admin('POST', `/keys/${id}/revoke`);
    await eventually(async () => (await send(key)).status === 401);
    await gateway.gateway.app.get(UsageRollup).run();
    await gateway.gateway.app.get(UsageRollup).onNight();
    const { data } = await gateway.admin<{ data: { calls: number }[] }>('GET', '/usage?group_by=model');
    expect(data.length).toBeGreaterThan(0);
    await gateway.gateway.app.get(Repricer).exclusively(() => Promise.resolve());
    await gateway.admin('GET', '/system');
    await gateway.admin('GET', '/sessions');
    const audit = await gateway.admin<{ data: { action: string }[] }>('GET', '/audit');
    expect(audit.data.map(({ action }) => action)).toContain('revoked');
    await gateway.admin('POST', '/apply', { document: { teams: [{ name: 'applied' }] } });
    await gateway.admin('POST', '/webhooks', {
      url: 'http://127.0.0.1:9/',
      events: ['key.expiring'],
      format: 'standard',
    });
  });

  it('sends its rows to a sink', async () => {
    const sink = await new FakeSink().listen();
    await gateway.admin('POST', '/sinks', { name: 'rows', kind: 'http', url: sink.url });
    const key = await gateway.createKey({});
    await send(key);
    await eventually(() => sink.ids.length > 0);
    await sink.close();
  });

  it('creates and drops days', async () => {
    const client = await postern.connect(postern.url('gateway'));
    const old = dayOf(Date.now() - 400 * DAY_MS);
    // Before the day on which the gateway was started.
    const before = (await listPartitions(client))[0]!.from - DAY_MS;
    expect(await createPartitions(client, [old, before])).toEqual([tableName(old), tableName(before)]);
    await eventually(async () => {
      gateway.gateway.app.get(PartitionsService).onSchedule();
      return !(await listPartitions(client)).some(({ from }) => from === old);
    });
    await client.end();
  });

  it.each([
    'CREATE TABLE mine ()',
    'CREATE TEMPORARY TABLE mine ()',
    'CREATE SCHEMA mine',
    'CREATE TABLE public.mine ()',
    'ALTER TABLE request_log ADD COLUMN mine int',
    'DROP TABLE request_log',
    'TRUNCATE audit_log',
    'DELETE FROM audit_log',
    "UPDATE audit_log SET action = 'nothing'",
    'DELETE FROM migrations',
    "UPDATE stored_function SET revision = 1000 WHERE name = 'limit_exchange'",
    'ALTER FUNCTION limit_exchange(uuid, bigint, interval, jsonb, jsonb, jsonb) COST 1',
    'CREATE OR REPLACE FUNCTION request_log_drop_partition(p_table regclass) RETURNS void LANGUAGE sql AS $$$$',
  ])('lets its gateways not %s', async (sql) => {
    await expect(postern.as('gateway', sql)).rejects.toThrow(/permission denied|must be owner/);
  });

  it.each([
    ["request_log_create_partition('audit_log', '2020-01-01Z', '2020-01-02Z')", 'not a partition of a day'],
    [
      "request_log_create_partition('request_log_20200101', '2020-01-01Z', '2020-01-03Z')",
      'not a partition of a day',
    ],
    [
      "request_log_create_partition('request_log_20200101; --', '2020-01-01Z', '2020-01-02Z')",
      'not a partition',
    ],
    ["request_log_drop_partition('audit_log')", 'has no partition'],
    ["request_log_drop_partition('request_log')", 'has no partition'],
    [`request_log_drop_partition('${tableName(dayOf(Date.now()) + DAY_MS)}')`, 'has not ended'],
  ])('lets its functions be used for days alone: %s', async (call, error) => {
    await expect(postern.as('gateway', `SELECT ${call}`)).rejects.toThrow(error);
  });

  it('is not deceived by a temporary table in place of the log', async () => {
    const name = new URL(postern.database.url).pathname.slice(1);
    await postern.database.query(`GRANT TEMPORARY ON DATABASE ${name} TO ${postern.role('gateway')}`);
    const client = await postern.connect(postern.url('gateway'));
    const day = dayOf(Date.now() - 300 * DAY_MS);
    await client.query(`
      CREATE TEMPORARY TABLE request_log (started_at timestamptz, mine int) PARTITION BY RANGE (started_at);
      CREATE TEMPORARY TABLE pg_inherits (inhrelid oid, inhparent oid)`);
    await client.query('SELECT request_log_create_partition($1, to_timestamp($2), to_timestamp($3))', [
      tableName(day),
      day / 1_000,
      day / 1_000 + 86_400,
    ]);
    const made = await postern.as<{ parent: string }>(
      'owner',
      `SELECT inhparent::regclass::text AS parent FROM pg_inherits WHERE inhrelid = '${tableName(day)}'::regclass`,
    );
    expect(made).toEqual([{ parent: 'request_log' }]);
    await client.query('SELECT request_log_drop_partition($1::regclass)', [tableName(day)]);
    await client.end();
    await postern.database.query(`REVOKE TEMPORARY ON DATABASE ${name} FROM ${postern.role('gateway')}`);
  });

  it('has reports that read the log, and neither change it nor take locks of the gateways', async () => {
    expect((await postern.as('reports', 'SELECT FROM request_log')).length).toBeGreaterThan(0);
    for (const sql of [
      'SELECT FROM gateway_key_secret',
      'SELECT pg_advisory_lock(7061001)',
      `SELECT request_log_drop_partition('${tableName(dayOf(Date.now()))}')`,
      'BEGIN READ WRITE; DELETE FROM request_log',
    ])
      await expect(postern.as('reports', sql)).rejects.toThrow('permission denied');
  });

  it('is upgraded by its owner, while gateways of both versions run, without another grant', async () => {
    class AddNext2000000000000 {
      up = (runner: { query(sql: string): Promise<unknown> }) =>
        runner.query('CREATE TABLE next (id int); ALTER TABLE team ADD COLUMN next int');
      down = () => Promise.resolve();
    }
    const next = { name: 'next', migrations: [AddNext2000000000000] };
    expect(await migrate(postern.url('owner'), [next])).toEqual(['next/AddNext2000000000000']);
    expect(await postern.as('gateway', 'INSERT INTO next VALUES (1) RETURNING id')).toEqual([{ id: 1 }]);
    expect((await send(await gateway.createKey({}))).status).toBe(200);
    // One more, whose budgets are in another time zone than those in the database.
    const second = await postern.gateway({ BUDGET_TIMEZONE: 'Asia/Kathmandu' });
    expect((await sendTo(second.url, await gateway.createKey({}), CHAT)).status).toBe(200);
    await second.stop();
  });

  it('has logged no error', () => {
    const isError = /permission denied|must be owner|could not/i;
    expect(logged().filter((text) => isError.test(text))).toEqual([]);
  });
});

it('an installation of an earlier version with one role gets a second one', async () => {
  const postern = await Installation.make('public');
  try {
    // The role that has done everything so far.
    await postern.run(`CREATE ROLE postern_owner LOGIN PASSWORD 'choose-one';
      GRANT ALL ON DATABASE postern TO postern_owner; GRANT ALL ON SCHEMA public TO postern_owner`);
    const upTo = MIGRATIONS.findIndex(({ name }) => name.startsWith('StoredFunctions'));
    const options = dataSourceOptions(postern.url('owner'), { applicationName: 'postern-test', poolSize: 1 });
    const before = await new DataSource({ ...options, migrations: MIGRATIONS.slice(0, upTo) }).initialize();
    await before.runMigrations();
    await before.query(`CREATE TABLE request_log_20260101 PARTITION OF request_log
      FOR VALUES FROM ('2026-01-01Z') TO ('2026-01-02Z')`);
    await before.destroy();

    await migrate(postern.url('owner'));
    await postern.run("CREATE ROLE postern_gateway LOGIN PASSWORD 'choose-another'");
    await postern.run(grants);
    const gateway = await postern.gateway({ REQUEST_LOG_RETENTION_DAYS: '30' });
    const reply = await sendTo(gateway.url, await gateway.createKey({}), CHAT);
    expect(reply.status).toBe(200);
    await gateway.row(reply.id);
    // Days that the owner has made are dropped too.
    const client = await postern.connect(postern.url('gateway'));
    await createPartitions(client, [Date.now() - DAY_MS]);
    await eventually(async () => {
      gateway.gateway.app.get(PartitionsService).onSchedule();
      return (await listPartitions(client)).every(({ table }) => table !== 'request_log_20260101');
    });
    await client.end();
    await gateway.stop();
  } finally {
    await postern.remove();
  }
});

it('a schema of one role alone is found by the options of the URL', async () => {
  const postern = await Installation.make('elsewhere');
  try {
    await postern.database.query('CREATE SCHEMA elsewhere');
    const url = new URL(postern.database.url);
    url.searchParams.set('options', '-c search_path=elsewhere');
    const query = async <T extends object>(sql: string, values?: unknown[]) => {
      const client = await postern.connect(url.href);
      return (await client.query<T>(sql, values).finally(() => client.end())).rows;
    };
    const gateway = await startTestGateway(
      { DATABASE_URL: url.href, PROVIDER_URL: provider.url },
      { ...postern.database, query },
    );
    const reply = await sendTo(gateway.url, gateway.key, CHAT);
    expect(reply.status).toBe(200);
    await gateway.row(reply.id);
    await gateway.stop();
    const inPublic = "SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    expect(await postern.database.query(inPublic)).toEqual([]);
  } finally {
    await postern.remove();
  }
});
