import pg from 'pg';
import { ADVISORY_LOCKS } from '../../src/database/advisory-locks.js';
import { Scrape } from '../observability/scrape.js';
import type { TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { runHere } from '../cli/run-here.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import type { GatewayProcess } from '../support/process.js';
import { send, Site } from '../support/site.js';
import { workersOf } from '../support/workers.js';
import type { Workplace } from '../support/workplace.js';
import { setPatience } from '../support/patience.js';

setPatience(1, 'the first connection to Postgres');
setPatience(5, 'metrics of a worker');

let site: Site;
let database: TestDatabase;
let workplace: Workplace;
let gateway: GatewayProcess;
let url: string;
let key: string;
beforeAll(async () => {
  site = await Site.make();
  ({ database, workplace } = site);
  // The first start, which prints the first key.
  key = await site.firstKey();
  gateway = site.gateway({ ADMIN_TOKEN, WORKERS: '2' });
  url = await gateway.ready();
});
afterAll(() => site.remove());

const settings = () => ({ DATABASE_URL: database.url, DATA_DIR: workplace.dataDir, ADMIN_TOKEN });
/** A command in this process, which finds the gateway as its user would. */
const postern = (...args: string[]) => runHere(args, settings());
const actorsOf = (name: string) =>
  database.query<{ actor: string; client_ip: string | null }>(
    'SELECT actor, client_ip FROM audit_log WHERE subject_name = $1',
    [name],
  );

const total = async () => (await Scrape.of(url)).sum('postern_calls_total');

const countDeaths = () =>
  (gateway.process.stdout + gateway.process.stderr).split('was killed by SIGKILL').length;

/** On a connection of its own: the system hands it to one of the workers. */
async function call(): Promise<void> {
  const client = await send(url, key);
  const { status } = await client.answer();
  client.destroy();
  expect(status).toBe(200);
}

it('says at the second start how to list and create keys, once for all workers, and prints no key', async () => {
  await gateway.process.until(
    /your gateway keys: \.\/postern keys list; a new one: \.\/postern keys create --team <team> --name <name>\n/,
  );
  await gateway.process.until(/2 workers share the port/);
});

it('is found by commands, which change things through it', async () => {
  expect(await postern('teams', 'create', 'two workers')).toMatchObject({ code: 0, stderr: '' });
  expect(await actorsOf('two workers')).toEqual([{ actor: 'admin-token', client_ip: '127.0.0.1' }]);
});

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
  await eventually(async () => (await workersOf(gateway.process.pid)).some((pid) => !before.includes(pid)));
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
  const totals: number[] = [];
  await eventually(async () => {
    const workers = await workersOf(gateway.process.pid);
    const deaths = countDeaths();
    process.kill(workers[1]!, 'SIGKILL');
    await eventually(() => countDeaths() > deaths);
    // The next one holds requests for its first seconds: an answer that took that long is its own.
    const since = performance.now();
    const seen = await eventually(async () => {
      const begun = performance.now();
      totals.push(...(await Promise.all([total(), total()])));
      if (performance.now() - begun > 2_000) return 'held';
      return begun - since > 30_000 && 'missed';
    });
    return seen === 'held';
  });
  expect(new Set(totals)).toEqual(new Set([before + 1]));
  await migrating.end();
});

it('is gone once it was stopped, also for commands', async () => {
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  expect(await postern('teams', 'create', 'no worker')).toMatchObject({ code: 0, stderr: '' });
  expect(await actorsOf('no worker')).toMatchObject([{ client_ip: null }]);
  expect(gateway.process.stdout.split('your gateway keys').length).toBe(2);
  expect(gateway.process.stdout).not.toMatch(/ptn_|curl/);
});
