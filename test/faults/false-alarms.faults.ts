import { execFile } from 'node:child_process';
import { readdir, rm, writeFile, chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { eventually } from '../support/eventually.js';
import { LogCluster } from '../support/log-cluster.js';
import { PlainCluster } from '../support/plain-cluster.js';
import { type Pooler, PGBOUNCER, startPooler } from '../support/pooler.js';
import { FAKETIME, postgresMajors, type PostgresMajor } from '../support/postgres-majors.js';
import { Fleet } from './failover-fleet.js';

const FULL = process.env.POSTERN_TEST_FULL === '1';
const run = promisify(execFile);
/** Through a pooler, a gateway starts only with it; clusters of tests have it off. */
const COMMITS = 'ALTER DATABASE postern SET synchronous_commit = on';
/** Of the whole file. */
let happened = 0;

afterAll(() => {
  process.stdout.write(`${happened} events in all, of which none was taken for a loss\n`);
});

const repeats = (times: number) => (FULL ? times : 1);

/** What replicas have noticed and said of losses. */
async function alarms(fleet: Fleet): Promise<string[]> {
  const rows = await fleet.cluster.query<{ row: string }>(
    'SELECT row_to_json(r)::text AS row FROM database_regression r',
  );
  const said = fleet.replicas.flatMap(({ process: { process } }) =>
    `${process.stdout}${process.stderr}`
      .split('\n')
      .filter((line) => /has lost what|is another database than before|are not put back/.test(line)),
  );
  return [...rows.map(({ row }) => row), ...said];
}

/** Under load; every replica has compared itself with the server before and after. */
async function happens(fleet: Fleet, event: () => Promise<void>): Promise<void> {
  fleet.load.run(fleet.urls, fleet.kinds, 1_000);
  await fleet.moreCalls(15);
  await event();
  await fleet.compared();
  await fleet.moreCalls(15);
  await fleet.load.stop();
  expect(await alarms(fleet)).toEqual([]);
  await fleet.expectWhatHolds();
  happened++;
}

async function report(name: string, times: number, each: () => Promise<void>): Promise<void> {
  for (let i = 0; i < times; i++) await each();
  process.stdout.write(`${name}: ${times} times, no loss noticed\n`);
}

function toolsOf(major: number): PostgresMajor {
  const tools = postgresMajors().find((one) => one.major === major);
  if (tools === undefined) throw new Error(`the programs of PostgreSQL ${major} are not installed`);
  return tools;
}

describe('no loss is noticed', () => {
  let fleet: Fleet;
  let pooler: Pooler | null = null;
  const cluster = () => fleet.cluster as LogCluster;

  beforeAll(async () => {
    const first = await LogCluster.start();
    await first.query(COMMITS);
    // The last replica is behind a pooler.
    if (PGBOUNCER !== null) pooler = await startPooler(first.url, 'transaction');
    else if (FULL) throw new Error('these tests need pgbouncer');
    fleet = await Fleet.start(first, 3, (number, url) =>
      Promise.resolve(
        number === 2 && pooler !== null ? { DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: url } : null,
      ),
    );
  }, 300_000);
  afterAll(async () => {
    await fleet.stop();
    await pooler?.stop();
  }, 120_000);

  /** A standby that has everything is promoted. @param lead points replicas to it */
  async function promote(lead: (standby: LogCluster) => Promise<void>): Promise<void> {
    const old = cluster();
    const standby = await old.standby();
    // To one that streams, a fast stop sends everything.
    const streams = `SELECT FROM pg_stat_replication WHERE state = 'streaming'`;
    await eventually(async () => (await old.query(streams)).length === 1);
    await fleet.forwarder.close();
    await old.stop();
    await standby.promote();
    await lead(standby);
    await old.remove();
  }

  const cases: [name: string, times: number, event: () => Promise<void>][] = [
    [
      'Postgres restarts',
      20,
      async () => {
        await cluster().stop();
        await cluster().begin();
      },
    ],
    [
      'Postgres crashes',
      20,
      async () => {
        await cluster().signal('SIGKILL');
        await cluster().begin();
      },
    ],
    [
      'an address cuts all connections',
      10,
      async () => {
        await fleet.forwarder.close();
        await fleet.forwarder.open();
      },
    ],
    [
      'a standby that has everything is promoted',
      10,
      () =>
        promote(async (standby) => {
          await fleet.lead(standby);
          await pooler?.lead(standby.url);
        }),
    ],
    [
      'a pooler leads to the promoted standby, and its clients keep their connections',
      10,
      () =>
        promote(async (standby) => {
          await pooler?.lead(standby.url);
          // The replica behind it works with the new server before it has been compared with it.
          await fleet.moreCalls(3);
          await fleet.lead(standby);
        }),
    ],
    ['a new cluster takes over by logical replication', 8, switchOver],
  ];
  it.each(cases)(
    'when %s',
    async (name, times, event) => {
      await report(name, repeats(times), () => happens(fleet, event));
    },
    1_800_000,
  );

  async function switchOver(): Promise<void> {
    const old = cluster();
    await old.query(`ALTER SYSTEM SET wal_level = 'logical'`);
    await old.stop();
    await old.begin();
    const next = await LogCluster.start();
    await next.query(COMMITS);
    const { password } = new URL(old.url);
    await next.setPassword(decodeURIComponent(password));
    const { bin } = toolsOf(18);
    const schema = ['--schema-only', '--no-publications', '--dbname', old.url];
    const { stdout } = await run(join(bin, 'pg_dump'), schema, { maxBuffer: 64 * 1_048_576 });
    const client = new pg.Client({ connectionString: next.url });
    await client.connect();
    // Commands of psql.
    await client.query(stdout.replaceAll(/^\\.*$/gm, ''));
    await client.end();
    await old.query('CREATE PUBLICATION everything FOR ALL TABLES');
    await next.query(
      `CREATE SUBSCRIPTION everything CONNECTION '${connection(old.url)}' PUBLICATION everything`,
    );
    await eventually(async () => {
      const states = await next.query<{ state: string }>(
        'SELECT srsubstate AS state FROM pg_subscription_rel',
      );
      return states.length > 0 && states.every(({ state }) => state === 'r');
    });
    // Writes stop.
    await fleet.forwarder.close();
    await pooler?.kill();
    await eventually(async () => {
      const { length } = await old.query(
        `SELECT FROM pg_stat_activity
         WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()`,
      );
      return length === 0;
    });
    const [end] = await old.query<{ lsn: string }>('SELECT pg_current_wal_lsn()::text AS lsn');
    await eventually(async () => {
      const [slot] = await old.query<{ is: boolean }>(
        `SELECT confirmed_flush_lsn >= $1::pg_lsn AS is FROM pg_replication_slots WHERE slot_name = 'everything'`,
        [end!.lsn],
      );
      return slot!.is;
    });
    const sequences = await old.query<{ name: string; value: string | null }>(
      `SELECT format('%I.%I', schemaname, sequencename) AS name, last_value::text AS value FROM pg_sequences`,
    );
    for (const { name, value } of sequences)
      if (value !== null) await next.query('SELECT setval($1::regclass, $2::bigint)', [name, value]);
    await next.query('DROP SUBSCRIPTION everything');
    // What the pooler still wrote to the old cluster would be lost.
    await pooler?.lead(next.url);
    await pooler?.start();
    await fleet.lead(next);
    await old.remove();
  }

  it('when a backup is restored by the guide', async () => {
    const { bin } = toolsOf(18);
    const folder = await mkdtemp(join(tmpdir(), 'postern-dump-'));
    await chmod(folder, 0o755);
    const dump = join(folder, 'postern.dump');
    const [kept, ...others] = fleet.replicas;
    for (const { process } of others) await process.stop();
    fleet.replicas.splice(1);
    const [{ url }] = [cluster()];
    await report('a backup is restored by the guide', repeats(8), async () => {
      fleet.load.run(fleet.urls, fleet.kinds, 1_000);
      await fleet.moreCalls(15);
      await run(join(bin, 'pg_dump'), ['--format=custom', `--file=${dump}`, `--dbname=${url}`]);
      await fleet.moreCalls(15);
      await fleet.load.stop();
      await kept!.process.stop();
      const { dataDir } = kept!.workplace;
      await rm(join(dataDir, 'kept'), { recursive: true, force: true });
      for (const name of await readdir(join(dataDir, 'journal')))
        await rm(join(dataDir, 'journal', name, 'kept'), { recursive: true, force: true });
      const client = new pg.Client({ connectionString: url.replace(/[^/]*$/, 'template1') });
      await client.connect();
      await client.query('DROP DATABASE postern WITH (FORCE)');
      await client.query('CREATE DATABASE postern');
      await client.end();
      const restore = ['--no-owner', '--exit-on-error', '--single-transaction', `--dbname=${url}`, dump];
      await run(join(bin, 'pg_restore'), restore);
      await fleet.restart(kept!);
      await fleet.compared();
      fleet.load.run(fleet.urls, fleet.kinds, 1_000);
      await fleet.moreCalls(15);
      await fleet.load.stop();
      expect(await alarms(fleet)).toEqual([]);
      happened++;
    });
    await rm(folder, { recursive: true });
  }, 1_800_000);
});

describe('no loss is noticed on servers of an installation', () => {
  let fleet: Fleet;
  let clock: string;
  const cluster = () => fleet.cluster as PlainCluster;
  const setClock = (offset: string) => writeFile(clock, offset);

  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'postern-clock-'));
    await chmod(folder, 0o755);
    clock = join(folder, 'clock');
    await setClock('+0');
    if (FAKETIME === null && FULL) throw new Error('these tests need libfaketime: apt-get install faketime');
    const environment: Record<string, string> =
      FAKETIME === null
        ? {}
        : {
            LD_PRELOAD: FAKETIME,
            FAKETIME_TIMESTAMP_FILE: clock,
            FAKETIME_NO_CACHE: '1',
            FAKETIME_DONT_FAKE_MONOTONIC: '1',
          };
    const first = await PlainCluster.make(postgresMajors()[0]!, environment);
    await first.begin();
    await first.makeDatabase();
    fleet = await Fleet.start(first, 2);
  }, 300_000);
  afterAll(() => fleet.stop(), 120_000);

  it('when pg_upgrade moves the data to a new cluster, also of a newer major version', async () => {
    const newer = postgresMajors().filter(({ major }) => major > cluster().major);
    const path: number[] = [cluster().major];
    await report('pg_upgrade', repeats(6), () =>
      happens(fleet, async () => {
        const old = cluster();
        const version = newer.shift() ?? postgresMajors().at(-1)!;
        path.push(version.major);
        await fleet.forwarder.close();
        await old.stop();
        const next = await old.upgrade(version);
        await next.begin();
        await fleet.lead(next);
        await old.remove();
      }),
    );
    process.stdout.write(`pg_upgrade went from PostgreSQL ${path.join(' to ')}\n`);
  }, 1_800_000);

  it('when the clock of Postgres goes back, while it runs or between two starts', async () => {
    if (FAKETIME === null) {
      process.stdout.write('skipped: needs libfaketime (apt-get install faketime)\n');
      return;
    }
    let offset = 0;
    await report('the clock of Postgres goes back', repeats(8), () =>
      happens(fleet, async () => {
        offset -= happened % 2 === 0 ? 30 : 900;
        const isStopped = happened % 4 < 2;
        if (isStopped) await cluster().stop();
        const [before] = isStopped
          ? [undefined]
          : await cluster().query<{ now: Date }>('SELECT clock_timestamp() AS now');
        await setClock(String(offset));
        if (isStopped) await cluster().begin();
        else
          await eventually(async () => {
            const [{ now }] = (await cluster().query<{ now: Date }>('SELECT clock_timestamp() AS now')) as [
              { now: Date },
            ];
            return now < before!.now;
          });
      }),
    );
  }, 1_800_000);
});

function connection(url: string): string {
  const { hostname, port, username, password, pathname } = new URL(url);
  return `host=${hostname} port=${port} user=${username} password=${decodeURIComponent(password)} dbname=${pathname.slice(1)}`;
}
