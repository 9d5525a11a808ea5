import { Logger } from '@nestjs/common';
import pg from 'pg';
import type { DatabaseService } from '../../src/database/database.service.js';
import { ReplicaJobs } from '../../src/database/replica-jobs.service.js';
import { Retention } from '../../src/database/retention.js';
import type { Settings } from '../../src/config/settings.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';

let database: TestDatabase;
let replicas: ReplicaJobs[];
beforeEach(async () => {
  database = await createDatabase();
  // Each has a session of its own, as each process has.
  replicas = Array.from({ length: 3 }, () => new ReplicaJobs({ databaseUrl: database.url } as Settings));
});
afterEach(async () => {
  jest.restoreAllMocks();
  for (const replica of replicas) await replica.onApplicationShutdown();
  await database.drop();
});

it('runs a job in one of the processes that ask at once, and each time in the same one', async () => {
  let runs = 0;
  const all = () => Promise.all(replicas.map((jobs) => jobs.onlyOneReplica('report', () => ++runs)));
  const first = await all();
  expect(first.filter(Boolean)).toHaveLength(1);
  // One that asks when the work is done does not do it again.
  expect(await all()).toEqual(first);
  expect(runs).toBe(2);
});

it('runs another job wherever it is asked for first', async () => {
  expect(await replicas[0]!.onlyOneReplica('report', () => {})).toBe(true);
  expect(await replicas[1]!.onlyOneReplica('report', () => {})).toBe(false);
  expect(await replicas[1]!.onlyOneReplica('invoices', () => {})).toBe(true);
});

it('asks one thing at a time of its session: pg warns of more on the standard error, and will reject it', async () => {
  const query = Reflect.get(pg.Client.prototype, 'query') as (...args: unknown[]) => Promise<unknown>;
  let underWay = 0;
  let most = 0;
  jest.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    most = Math.max(most, ++underWay);
    return query.apply(this, args).finally(() => underWay--);
  });
  const jobs = ['report', 'invoices', 'mail', 'backup'];
  const all = () => Promise.all(jobs.map((name) => replicas[0]!.onlyOneReplica(name, () => {})));
  expect([await all(), await all(), most]).toEqual([Array(4).fill(true), Array(4).fill(true), 1]);
});

it('deletes what is old in one of the processes', async () => {
  class OldRows extends Retention {
    protected readonly logger = new Logger('Test');
    protected readonly failure = 'not deleted';
    runs = 0;
    run(): Promise<void> {
      this.runs++;
      return Promise.resolve();
    }
  }
  const all = replicas.map(
    (jobs) =>
      new OldRows(null as never, { notReady: null } as DatabaseService, jobs, { worker: 1 } as Settings),
  );
  for (const one of all) one.onInterval();
  await eventually(() => all.every((one) => Reflect.get(one, 'running') === null));
  await Promise.all(all.map((one) => one.onApplicationShutdown()));
  expect(all.map(({ runs }) => runs).sort()).toEqual([0, 0, 1]);
});

it('does not run a job in a process whose earlier run has not ended', async () => {
  const { promise, resolve } = deferred();
  const run = replicas[0]!.onlyOneReplica('report', () => promise);
  expect(await replicas[0]!.onlyOneReplica('report', () => {})).toBe(false);
  resolve();
  expect(await run).toBe(true);
});

it('passes on what the work throws, and runs it again', async () => {
  const failing = () => Promise.reject(new Error('no paper'));
  await expect(replicas[0]!.onlyOneReplica('report', failing)).rejects.toThrow('no paper');
  expect(await replicas[0]!.onlyOneReplica('report', () => {})).toBe(true);
});

it('runs it elsewhere when the process or its connection has ended', async () => {
  const [first, second] = replicas as [ReplicaJobs, ReplicaJobs];
  const run = (jobs: ReplicaJobs) => jobs.onlyOneReplica('report', () => {}).catch(() => false);
  expect(await run(first)).toBe(true);
  expect(await run(second)).toBe(false);
  await database.query(
    `SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
     WHERE d.datname = current_database() AND locktype = 'advisory' AND classid = 7061008`,
  );
  await eventually(() => run(second));
  expect(await run(first)).toBe(false);
  await second.onApplicationShutdown();
  await eventually(() => run(first));
});
