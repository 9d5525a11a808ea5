import { readdir } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { liveBytes } from '../support/live-bytes.js';
import { PostgresRelay } from '../support/postgres-relay.js';
import { LogHarness } from '../request-log/log-harness.js';

const ROWS = 200_000;
/** By then memory has taken all the rows it takes. */
const FULL_BY = 60_000;
const MIB = 1024 * 1024;

let database: TestDatabase;
let relay: PostgresRelay;
beforeAll(async () => {
  database = await createDatabase();
  relay = await PostgresRelay.to(database.url);
});
afterAll(async () => {
  await relay.close();
  await database.drop();
});

const count = async () =>
  (await database.query<{ n: number }>('SELECT count(*)::int AS n FROM request_log'))[0]!.n;

it('holds 200,000 rows for an unavailable Postgres in bounded memory, and brings each back once', async () => {
  const log = await LogHarness.start(relay.url);
  log.record();
  await eventually(async () => (await count()) === 1);
  relay.set('postern-log', 'cut');
  const before = liveBytes();
  let peak = 0;
  let retainedThen = 0;
  let made = 1;
  while (made <= ROWS) {
    for (let i = 0; i < 500; i++, made++) log.record();
    log.expectAccountsToAgree();
    if (made % 20_000 === 1) peak = Math.max(peak, liveBytes());
    if (made === FULL_BY + 1) retainedThen = liveBytes();
    await turn();
  }
  const grown = liveBytes() - retainedThen;
  const spilled = log.writer.counts.spilled;
  expect(log.writer.waiting).toBeLessThanOrEqual(20_000);
  const onDisk = log.journal.bytes;
  relay.set('postern-log', 'none');
  await eventually(() => log.writer.counts.persisted > 1_000);
  const begun = performance.now();
  const from = log.writer.counts.persisted;
  let measured = from;
  await eventually(() => {
    log.expectAccountsToAgree();
    if (log.writer.counts.persisted - measured >= 20_000) {
      peak = Math.max(peak, liveBytes());
      measured = log.writer.counts.persisted;
    }
    return log.writer.counts.persisted === ROWS + 1;
  });
  const rate = ((ROWS + 1 - from) / (performance.now() - begun)) * 1_000;
  expect(await count()).toBe(ROWS + 1);
  expect(log.drain.counts).toEqual({ corrupt: 0, interrupted: 0, drained: spilled });
  expect(await log.rejectedFiles()).toEqual([]);
  await log.stop();
  expect(await readdir(log.journal.root)).toEqual([]);
  await log.remove();
  process.stdout.write(
    `${ROWS} rows while Postgres was unavailable: at most ${Math.round((peak - before) / MIB)} MiB more in use, ` +
      `${Math.round(grown / MIB)} MiB more than after ${FULL_BY}; ${spilled} spilled, ` +
      `${Math.round(onDisk / MIB)} MiB of journal; then ${Math.round(rate)} rows/s\n`,
  );
  // The spilled 140,000 would be 100 MiB and more.
  expect(grown).toBeLessThan(24 * MIB);
  expect(peak - before).toBeLessThan(100 * MIB);
}, 400_000);

it('drains the folder of a killed process at the same speed', async () => {
  relay.set('postern-log', 'cut');
  const dead = await LogHarness.start(relay.url);
  for (let i = 0; i < 100_000; i++) {
    dead.record();
    if (i % 1_000 === 0) await turn();
  }
  // Its end without a shutdown: what counts is on the disk already.
  await dead.writer.stop();
  relay.set('postern-log', 'none');
  const had = await count();
  const begun = performance.now();
  const next = await LogHarness.start(relay.url, { dataDir: dead.dataDir });
  await eventually(() => next.drain.counts.drained >= 100_000);
  const rate = 100_000 / (performance.now() - begun);
  expect(await count()).toBe(had + 100_000);
  expect(next.drain.counts).toEqual({ corrupt: 0, interrupted: 0, drained: 100_000 });
  await next.stop();
  await dead.journal.close();
  await next.remove();
  process.stdout.write(`100000 rows of a killed process: ${Math.round(rate * 1_000)} rows/s\n`);
});
