import { randomBytes } from 'node:crypto';
import { type AddressInfo, createServer } from 'node:net';
import { createDatabase, type TestDatabase } from '../support/database.js';
import type { GatewayProcess } from '../support/process.js';
import { Workplace } from '../support/workplace.js';

let database: TestDatabase;
let workplace: Workplace;

beforeAll(async () => {
  database = await createDatabase({ empty: true });
});
afterAll(() => database.drop());
beforeEach(async () => {
  workplace = await Workplace.make();
});
afterEach(() => workplace.remove());

/** Waits for the end of a start that cannot succeed. @returns what it says of it */
async function rejection({ process }: GatewayProcess): Promise<string> {
  expect(await process.ended).toEqual({ code: 1, signal: null });
  expect(process.stdout).not.toContain('ready on');
  return process.stderr;
}

/** The run's server with something of its URL changed. */
function serverUrl(change: (url: URL) => void): string {
  const url = new URL(database.url);
  change(url);
  return url.href;
}

it('lists every error in the settings at once and prints no value', async () => {
  const values = {
    PORT: 'eighty-eighty',
    DATABASE_URL: 'mysql://u:hidden-password@db/x',
    PROVIDER_URL: 'https://api.example.com/hidden-path?x#y',
    ADMIN_TOKEN: 'hidden-admin',
    MASTER_KEY: 'hidden-master',
    TRUSTED_PROXIES: 'hidden-proxy',
    LOG_LEVEL: 'hidden-level',
  };
  const said = await rejection(workplace.gateway(values));
  for (const name of Object.keys(values)) expect(said).toContain(name);
  for (const value of Object.values(values)) expect(said).not.toContain(value);
  expect(said).not.toMatch(/hidden|eighty|^ +at /m);
});

it('names the remedy for a malformed DATABASE_URL without showing it', async () => {
  const said = await rejection(workplace.gateway({ DATABASE_URL: 'postgres://u:hidden%password@db' }));
  expect(said).toMatch(/DATABASE_URL.*must look like postgres:/);
  expect(said).not.toContain('hidden');
});

it('names the port that is taken, and has not spent the first key on a start that nobody saw', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as AddressInfo;
  const start = () => workplace.gateway({ DATABASE_URL: database.url, PORT: String(port) });
  expect(await rejection(start())).toBe(
    `postern: 127.0.0.1:${port} is in use by another process; stop it or set PORT to a free port\n`,
  );
  await new Promise((resolve) => other.close(resolve));
  const second = start();
  await second.firstKey();
  expect(await second.stop()).toEqual({ code: 0, signal: null });
});

it('exits on a rejected password', async () => {
  // A role that does not exist is rejected whichever way the server authenticates.
  const secret = randomBytes(12).toString('hex');
  const url = serverUrl((to) => {
    to.username = 'nobody_here';
    to.password = secret;
  });
  const said = await rejection(workplace.gateway({ DATABASE_URL: url }));
  expect(said).toMatch(/^postern: Postgres rejected th(e|is) user .*DATABASE_URL.* start again\.\n$/);
  expect(said).not.toContain(secret);
});

it('exits on a missing database, at once whatever the delay of a stop', async () => {
  const url = serverUrl((to) => (to.pathname = '/no_such_database'));
  const settings = { DATABASE_URL: url, SHUTDOWN_DELAY_MS: '3600000' };
  expect(await rejection(workplace.gateway(settings))).toBe(
    'postern: The database named by DATABASE_URL does not exist. Create it (createdb) and start again.\n',
  );
});
