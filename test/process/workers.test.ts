import pg from 'pg';
import { ADVISORY_LOCKS } from '../../src/database/advisory-locks.js';
import { Scrape } from '../observability/scrape.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import type { GatewayProcess } from '../support/process.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { workersOf } from '../support/workers.js';
import { Workplace } from '../support/workplace.js';

let database: TestDatabase;
let workplace: Workplace;
let provider: RawProvider;
let gateway: GatewayProcess;
let url: string;
let key: string;
beforeAll(async () => {
  database = await createDatabase();
  workplace = await Workplace.make();
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'ok'));
  });
  gateway = workplace.gateway({
    DATABASE_URL: database.url,
    PROVIDER_URL: provider.url,
    ADMIN_TOKEN,
    WORKERS: '2',
  });
  [url, key] = await Promise.all([gateway.ready(), gateway.firstKey()]);
});
afterAll(async () => {
  await workplace.remove();
  await provider.stop();
  await database.drop();
});

const total = async () => (await Scrape.of(url)).sum('postern_calls_total');

const countDeaths = () =>
  (gateway.process.stdout + gateway.process.stderr).split('was killed by SIGKILL').length;

async function call(): Promise<void> {
  // A connection of its own: the system hands it to one of the workers.
  const client = await RawClient.connect(Number(new URL(url).port));
  client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${key}`], '{}'));
  expect((await client.answer()).status).toBe(200);
  client.destroy();
}

it('tells the sum over all workers, whichever is asked, also after one of them has died', async () => {
  await Promise.all(Array.from({ length: 60 }, call));
  await eventually(async () => (await total()) === 60);
  expect(await Promise.all(Array.from({ length: 8 }, total))).toEqual(Array<number>(8).fill(60));

  const before = await workersOf(gateway.process.pid);
  process.kill(before[1]!, 'SIGKILL');
  // A connection handed to it in the moment of its death would wait for ever.
  await gateway.process.until(/was killed by SIGKILL/);
  // While it is gone, and once another has come.
  expect(await total()).toBe(60);
  await eventually(
    async () => (await workersOf(gateway.process.pid)).some((pid) => !before.includes(pid)),
    20_000,
  );
  await Promise.all(Array.from({ length: 40 }, call));
  await eventually(async () => (await total()) === 100);
  // The dead one's too.
  await eventually(async () => {
    const [log] = await database.query<{ rows: number }>('SELECT count(*)::int AS rows FROM request_log');
    return log!.rows === 100;
  });

  // One that hangs answers nothing; what it told last stands in.
  const [, hanging] = await workersOf(gateway.process.pid);
  process.kill(hanging!, 'SIGSTOP');
  // Of two connections at once, at most one is handed to it, and waits there.
  expect(await Promise.race([total(), total()])).toBe(100);
  process.kill(hanging!, 'SIGCONT');
});

it('tells the sum also where a worker answers that waits for Postgres at its start', async () => {
  const before = await total();
  await call();
  await eventually(async () => (await total()) === before + 1);

  // As when another replica migrates.
  const migrating = new pg.Client({ connectionString: database.url });
  await migrating.connect();
  await migrating.query('SELECT pg_advisory_lock($1)', [ADVISORY_LOCKS.migrations]);
  const workers = await workersOf(gateway.process.pid);
  const deaths = countDeaths();
  process.kill(workers[1]!, 'SIGKILL');
  await eventually(() => countDeaths() > deaths);
  // The next one holds requests for its first seconds: an answer that took that long is its own.
  await eventually(async () => {
    const begun = performance.now();
    expect(await Promise.all([total(), total()])).toEqual([before + 1, before + 1]);
    return performance.now() - begun > 2_000;
  });
  await migrating.end();
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
});
