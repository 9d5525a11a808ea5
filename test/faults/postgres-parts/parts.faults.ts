import { chown, stat } from 'node:fs/promises';
import pg from 'pg';
import { generateKey } from '../../../src/keys/key-secret.js';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { timePasses } from '../../support/eventually.js';
import { LogCluster } from '../../support/log-cluster.js';
import type { RawProvider } from '../../support/raw-provider.js';
import { canMount, SmallDisk } from '../../support/small-disk.js';
import { expectRows, judge, LoadedGateway, startProvider } from './loaded-gateway.js';

/* No part of Postgres that fails makes a plain key wait, and a key with limits no longer than the guide says. */

/** Longer than every timeout of a statement on the way of a call. */
const HOLD_MS = 6_500;
const DISK_MIB = 96;

let cluster: LogCluster;
let beside: TestDatabase;
let provider: RawProvider;
// Undefined where the start failed: what there is by then is removed all the same.
let gateway: LoadedGateway;
let control: LoadedGateway | undefined;
let disk: SmallDisk | null = null;

beforeAll(async () => {
  cluster = await LogCluster.start();
  if (canMount) {
    disk = await SmallDisk.mount(DISK_MIB);
    const { uid, gid } = await stat(cluster.folder);
    await chown(disk.path, uid, gid);
    await cluster.query(`CREATE TABLESPACE small LOCATION '${disk.path}'`);
    await cluster.query('ALTER DATABASE postern SET default_tablespace = small');
  }
  beside = await createDatabase();
  provider = await startProvider();
  gateway = await LoadedGateway.start(provider, { DATABASE_URL: cluster.url });
  control = await LoadedGateway.start(provider, { DATABASE_URL: beside.url });
}, 240_000);
afterAll(async () => {
  await (gateway as LoadedGateway | undefined)?.stop();
  await control?.stop();
  await (provider as RawProvider | undefined)?.stop();
  await (beside as TestDatabase | undefined)?.drop();
  await cluster.remove();
  await disk?.unmount();
});

/** Spoils a part; what it returns restores it. */
type Trouble = () => Promise<() => Promise<unknown>>;

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: cluster.url });
  client.on('error', () => {});
  await client.connect();
  return client;
}

const locked =
  (...tables: string[]): Trouble =>
  async () => {
    const client = await connect();
    await client.query(`BEGIN; LOCK TABLE ${tables.join(', ')} IN ACCESS EXCLUSIVE MODE`);
    return () => client.query('COMMIT').then(() => client.end());
  };

/** Stops the processes of Postgres that serve the gateway's connections of this name. */
const frozen =
  (application: string): Trouble =>
  async () => {
    // Known keys are looked up nowhere: an unknown one opens a connection for that.
    expect((await gateway.call('plain', generateKey())).status).toBe(401);
    const pids = await cluster.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE application_name = '${application}'`,
    );
    expect(pids.length).toBeGreaterThan(0);
    const signal = (name: NodeJS.Signals) => pids.forEach(({ pid }) => process.kill(pid, name));
    signal('SIGSTOP');
    return () => Promise.resolve(signal('SIGCONT'));
  };

/** Each statement that writes the table takes so long. */
const slow =
  (table: string, seconds: number): Trouble =>
  async () => {
    await cluster.query(`
      CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(${seconds}); RETURN NULL; END $$;
      CREATE TRIGGER slow BEFORE INSERT OR UPDATE OR DELETE ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION slow()`);
    return () => cluster.query(`DROP TRIGGER slow ON ${table}`);
  };

const full: Trouble = () => {
  disk!.fill();
  return Promise.resolve(() => Promise.resolve(disk!.empty()));
};

/** Every connection is taken, and the gateway loses its own. */
const crowded: Trouble = async () => {
  const crowd = [await connect()];
  const fill = async () => {
    for (;;) {
      const next = await connect().catch(() => null);
      if (next === null) return;
      crowd.push(next);
    }
  };
  await fill();
  await crowd[0]!.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'postern%'",
  );
  await fill();
  return () => Promise.all(crowd.map((client) => client.end()));
};

const TROUBLES: Record<string, Trouble> = {
  'nothing wrong': () => Promise.resolve(() => Promise.resolve()),
  'the request log locked': locked('request_log'),
  'the change counters locked': locked('change_counter'),
  'keys and teams locked': locked('gateway_key', 'gateway_key_secret', 'team'),
  'limit_rule locked': locked('limit_rule'),
  'limit_meter locked': locked('limit_meter'),
  'limit_hold locked': locked('limit_hold'),
  'limit_slot locked': locked('limit_slot'),
  'limit_process locked': locked('limit_process'),
  'stored responses locked': locked('idempotency_record'),
  'prices locked': locked('price'),
  'providers and routes locked': locked('provider', 'route'),
  'the sums of usage locked': locked('usage_rollup'),
  'its disk full': full,
  'no connection left': crowded,
  'inserts of rows that take 3 s': slow('request_log', 3),
  'exchanges of limits that take 1.5 s': slow('limit_process', 1.5),
  'claims that take 3 s': slow('idempotency_record', 3),
  'the log writer frozen': frozen('postern-log'),
  'the exchange of limits frozen': frozen('postern-limits'),
  'look-ups frozen': frozen('postern-lookups'),
  'the notifications frozen': frozen('postern-changes/2'),
  'idempotency frozen': frozen('postern-idempotency'),
};

it.each(Object.keys(TROUBLES))(
  'a plain key waits for nothing, and a limited one within its bounds, with %s',
  async (name) => {
    if (name === 'its disk full' && disk === null) {
      process.stdout.write('NOT TRIED: a full disk, because nothing can be mounted here\n');
      return;
    }
    gateway.run();
    control!.run({ plain: 3, budget: 0, rate: 0, concurrency: 0, replay: 0, cached: 0 });
    await timePasses(500, 'calls before the trouble');
    const restore = await TROUBLES[name]!();
    await gateway.during(HOLD_MS).finally(restore);
    const [calls, usual] = await Promise.all([gateway.rest(), control!.rest()]);
    const words = judge(name, calls, usual);
    const seconds = await expectRows((sql, values) => cluster.query(sql, values), calls.ids);
    await gateway.healthy();
    expect(gateway.mostArrivals).toBe(1);
    process.stdout.write(`${words}; all rows ${seconds.toFixed(1)} s after\n`);
  },
  240_000,
);
