import { generateKey } from '../../src/keys/key-secret.js';
import { AccountedLoad } from '../support/accounted-load.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { drained, rowsOf } from '../support/kill-rounds.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { PostgresRelay } from '../support/postgres-relay.js';
import { Workplace } from '../support/workplace.js';

const STREAMS = 50;
const GRACE_MS = 1_000;
/** What follows the grace: the last rows (5 s when Postgres hangs), what is owed to repeats, good-byes. */
const AFTER_MS = 12_000;

let database: TestDatabase;
let workplace: Workplace;
let load: AccountedLoad;
let relay: PostgresRelay;

beforeAll(async () => {
  database = await createDatabase();
  relay = await PostgresRelay.to(database.url);
  workplace = await Workplace.make();
  load = await AccountedLoad.start();
  load.streamsOnly = true;
});
afterAll(async () => {
  await load.close();
  await workplace.remove();
  await relay.close();
  await database.drop();
});

it.each(
  Array.from({ length: 10 }, (_, i) => ({
    round: i + 1,
    postgres: (['there', 'cut', 'frozen'] as const)[i % 3]!,
  })),
)(
  'has a row of each of 50 live streams after SIGTERM, Postgres being $postgres ($round)',
  async ({ round, postgres }) => {
    const settings = {
      DATABASE_URL: relay.url,
      PROVIDER_URL: load.provider.url,
      SHUTDOWN_GRACE_MS: `${GRACE_MS}`,
    };
    const gateway = workplace.gateway(settings);
    const url = await gateway.ready();
    await drained(workplace);
    const key = (keyOfAll ??= await gateway.firstKey());
    // Half of the streams end within the grace, the others never do.
    const end = deferred();
    const never = deferred();
    let turn = 0;
    load.pace = () => (turn++ % 2 === 0 ? never.promise : end.promise);
    load.run(url, key, STREAMS);
    const before = load.seen.size;
    await eventually(() => load.seen.size >= before + STREAMS);
    if (postgres !== 'there') relay.set('postern-log', postgres);
    const begun = performance.now();
    const stopped = gateway.stop();
    await gateway.process.until(/stopping: waiting for calls in flight/);
    load.pace = () => Promise.resolve();
    end.resolve();
    expect(await stopped).toEqual({ code: 0, signal: null });
    expect(performance.now() - begun).toBeLessThan(GRACE_MS + AFTER_MS);
    never.resolve();
    await load.stop({ gone: true });
    relay.set('postern-log', 'none');
    // What could not be written then is written by the next start.
    const next = workplace.gateway(settings);
    await next.ready();
    await drained(workplace);
    const rows = await rowsOf(database);
    expect(rows).toHaveLength(load.seen.size);
    expect(load.judge(rows)).toEqual([]);
    expect(await next.stop()).toEqual({ code: 0, signal: null });
    const cut = rows.filter(({ outcome }) => outcome === 'interrupted').length;
    process.stdout.write(`SIGTERM ${round}: ${rows.length} rows, ${cut} of them interrupted, in all\n`);
  },
  90_000,
);

/** What waits for Postgres in other places: a list, a look-up, claims and an answer of replay keys, uses of keys. */
it('ends in that time when all of Postgres is frozen, whoever waits for it', async () => {
  const gateway = workplace.gateway({
    DATABASE_URL: relay.url,
    PROVIDER_URL: load.provider.url,
    SHUTDOWN_GRACE_MS: `${GRACE_MS}`,
    ADMIN_TOKEN,
  });
  const url = await gateway.ready();
  const admin = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ team: 'default', name: 'replay', idempotency: 'replay' });
  const made = await fetch(`${url}/admin/v1/keys`, { method: 'POST', headers: admin, body });
  const { key } = (await made.json()) as { key: string };
  // Half of the answers are there to be stored within the grace, the other half's calls are cut.
  const end = deferred();
  const never = deferred();
  let turn = 0;
  load.pace = () => (turn++ % 2 === 0 ? never.promise : end.promise);
  load.run(url, key, STREAMS);
  const before = load.seen.size;
  await eventually(() => load.seen.size >= before + STREAMS);
  relay.set('*', 'frozen');
  const left = [
    fetch(`${url}/admin/v1/requests`, { headers: admin }),
    fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${generateKey()}` } }),
  ].map((answer) => answer.catch(() => null));
  const begun = performance.now();
  const stopped = gateway.stop();
  await gateway.process.until(/stopping: waiting for calls in flight/);
  load.pace = () => Promise.resolve();
  end.resolve();
  expect(await stopped).toEqual({ code: 0, signal: null });
  const took = Math.round(performance.now() - begun);
  process.stdout.write(`SIGTERM with all of Postgres frozen: ${took} ms\n`);
  expect(took).toBeLessThan(GRACE_MS + AFTER_MS);
  never.resolve();
  await Promise.all(left);
  await load.stop({ gone: true });
  relay.set('*', 'none');
});

let keyOfAll: string | undefined;
