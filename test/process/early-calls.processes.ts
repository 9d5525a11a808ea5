import pg from 'pg';
import type { TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import type { RawProvider } from '../support/raw-provider.js';
import { Site } from '../support/site.js';
import type { Workplace } from '../support/workplace.js';
import { unusedPort } from '../support/unused-port.js';

/** src/database/migrate.ts: a replica that holds it keeps the others from looking at the schema. */
const MIGRATION_LOCK = 7_061_001;

let site: Site;
let database: TestDatabase;
let workplace: Workplace;
let provider: RawProvider;

beforeAll(async () => {
  site = await Site.make();
  ({ database, workplace, provider } = site);
});
afterAll(() => site.remove());

it('has calls wait that come before the first look at Postgres is over, and says meanwhile that it is not ready', async () => {
  const port = await unusedPort();
  const settings = { DATABASE_URL: database.url, PROVIDER_URL: provider.url, PORT: `${port}` };
  const key = await site.firstKey();
  const outcomes = () => database.query('SELECT outcome FROM request_log');

  const other = new pg.Client({ connectionString: database.url });
  await other.connect();
  await other.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
  const gateway = workplace.gateway(settings);
  const url = `http://127.0.0.1:${port}`;
  const ready = await eventually(() => fetch(`${url}/health/ready`).catch(() => null));
  expect(ready.status).toBe(503);
  const call = fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  // One that came later and was answered: the call is being held, not on its way.
  expect((await fetch(`${url}/health/live`)).status).toBe(200);
  await other.end();
  expect((await call).status).toBe(200);
  expect(await (await call).text()).toBe('ok');
  await eventually(async () => (await outcomes()).length > 0);
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  expect(await outcomes()).toEqual([{ outcome: 'completed' }]);
});
