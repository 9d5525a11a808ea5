// `npm run bench:overview`: how long the first page of the console takes in a browser, with a million calls of a month in
// the request log; first when usage is added up, then while it is being added up again.
import { existsSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { chromium } from 'playwright-core';
import { startArgs } from './contenders/postern.mjs';
import { treeMicros } from './cpu-time.mjs';
import { withWorkplace } from './lifetime.mjs';
import { describeMachine } from './machine.mjs';
import { median } from './statistics.mjs';
import { root } from './workplace.mjs';

const HELP = `Usage: npm run bench:overview -- [options]

Opens the overview of the console in Chromium (CHROMIUM, else Debian's) with a full request log, and prints how long it
takes until the last figure, the processor time of the gateway, Postgres and the browser, and the responses 503. Usage
that is not added up yet is read from the log itself.

  --rows N   calls in the log, of 30 days (1000000)
  --reps N   how often it is opened once usage is added up (7)
  --behind N days that are added up again (2)
  --pool N   connections of the gateway to Postgres (10)`;
const MAX_MS = 3_600_000;
const OPEN_MS = 120_000;
const ADMIN_TOKEN = 'bench-overview-0123456789abcdef0123456789';
const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-headless-shell', '/usr/bin/google-chrome'];

/**
 * Notes when the overview is whole, in ms since the navigation began: all sections are there, none is loading, and the chart
 * has bars. It looks once for each frame, as a reader does.
 */
const NOTE_WHOLE = `{
  const LOADING = '[aria-busy="true"], .mantine-Skeleton-root, [data-loading="true"]';
  const SECTIONS = [ 'Cost', 'Calls', 'Tokens', 'Error rate', 'Top teams', 'Top models', 'Top keys',
    'Budgets over 80', 'Providers'];
  const isWhole = () => {
    if (document.querySelector(LOADING) !== null || document.querySelector('.recharts-bar-rectangle') === null) return false;
    const text = document.querySelector('main')?.innerText ?? '';
    return /Needs attention|All well/.test(text) && SECTIONS.every((section) => text.includes(section));
  };
  const look = () => {
    if (document.querySelector('[role="alert"]') !== null) window.overviewFailed = document.querySelector('[role="alert"]').innerText;
    if (isWhole()) window.overviewWhole ??= performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}`;

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    reps: { type: 'string', default: '7' },
    behind: { type: 'string', default: '2' },
    pool: { type: 'string', default: '10' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const [rows, reps] = [Number(values.rows), Number(values.reps)];
const executablePath = [process.env.CHROMIUM, ...PLACES].find((path) => path && existsSync(path));
if (executablePath === undefined)
  throw new Error(
    'there is no Chromium; install chromium-headless-shell, or set CHROMIUM to the path of a browser',
  );

await withWorkplace(MAX_MS, run, { isPinned: false });

async function run({ workplace, postgres }) {
  const { date, commit, cores, cpu, versions } = describeMachine(workplace, postgres.version, []);
  console.log(
    `${date.slice(0, 10)}, commit ${commit}, ${cores} × ${cpu}, node ${versions.node}, postgres ${versions.postgres}`,
  );
  const database = await postgres.createDatabase();
  const gateway = await startGateway(workplace, database);
  await setPrices(gateway.url);
  await fill(workplace, database);
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  // A server of its own says which process it is.
  const server = await chromium.launchServer({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
  workplace.onClose(async () => {
    await server.close();
    await client.end();
  });
  const browser = await chromium.connect(server.wsEndpoint());
  const page = await signedIn(browser, gateway.url);
  const pids = { gateway: gateway.pid, postgres: postgres.pid, browser: server.process().pid };

  await addedUp(client);
  await client.query('VACUUM (ANALYZE) usage_slot, usage_day');
  const idle = [];
  while (idle.length < reps) idle.push(await open(page, gateway.url, pids));
  print(`${rows} rows, usage added up, pool of ${values.pool}`, idle);

  const busy = [];
  await addUpAgain(client);
  do busy.push(await open(page, gateway.url, pids));
  while (!(await isAddedUp(client)));
  print(`${rows} rows, while those of ${values.behind} days are added up, pool of ${values.pool}`, busy);
  return [...idle, ...busy].some(({ unavailable }) => unavailable > 0) ? 1 : 0;
}

async function startGateway(workplace, database) {
  const { flags, entry } = startArgs(root);
  const { pid, found } = await workplace.start([process.execPath, ...flags, entry], {
    name: 'postern',
    cores: null,
    ready: (text) => {
      const url = /ready on (http:\/\/127\.0\.0\.1:\d+)\n/.exec(text);
      return url && { url: url[1] };
    },
    env: {
      PORT: '0',
      DATA_DIR: join(workplace.folder, 'data'),
      DATABASE_URL: database.url,
      DATABASE_POOL_SIZE: values.pool,
      ADMIN_TOKEN,
      PROVIDER_URL: 'https://api.openai.com',
      PROVIDER_KEY: 'sk-provider',
      LOG_LEVEL: 'warn',
      SHUTDOWN_GRACE_MS: '0',
    },
  });
  return { pid, url: found.url };
}

/** Without prices there would be no costs to add up. */
async function setPrices(url) {
  for (const model of ['gpt-5-mini', 'gpt-5', 'gpt-4o-mini']) {
    const response = await fetch(`${url}/admin/v1/prices`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ catalog: 'openai', model, input: '1.25', output: '10' }),
    });
    if (!response.ok) throw new Error(`the price of ${model} was not set: ${await response.text()}`);
  }
}

/** 20 teams with 10 keys each. */
async function fill(workplace, database) {
  const seed = [
    join(root, 'scripts', 'seed-request-log.mjs'),
    '--rows',
    String(rows),
    '--days',
    '30',
    '--teams',
    '20',
    '--yes',
  ];
  console.log('Filling the request log ...');
  const { stop } = await workplace.start([process.execPath, ...seed], {
    name: 'seed:log',
    cores: null,
    cwd: root,
    ready: (text) => /^Done/m.test(text) && {},
    env: { DATABASE_URL: database.url, NODE_ENV: 'development' },
  });
  await stop();
}

/** As if no gateway had run since: the sums of the last days are gone, and the gateway makes them again. */
async function addUpAgain(client) {
  const since = `date_trunc('day', now(), 'UTC') - make_interval(days => ${Number(values.behind) - 1})`;
  await client.query(`BEGIN; UPDATE usage_rollup SET "cursor" = ${since};
    DELETE FROM usage_slot WHERE slot >= ${since}; DELETE FROM usage_day WHERE slot >= ${since}; COMMIT`);
}

async function isAddedUp(client) {
  const { rows: found } = await client.query(
    `SELECT "cursor" > now() - interval '1 minute' AS done FROM usage_rollup`,
  );
  return found[0].done;
}

async function addedUp(client) {
  console.log('Waiting until usage is added up ...');
  while (!(await isAddedUp(client))) await sleep(500);
}

async function signedIn(browser, url) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
  await page.goto(`${url}/console/`);
  await page.getByLabel('Admin token').fill(ADMIN_TOKEN);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  await page.addInitScript(NOTE_WHOLE);
  return page;
}

/** Opens the overview, as somebody does who has been there before. */
async function open(page, url, pids) {
  let [requests, unavailable] = [0, 0];
  const count = (response) => {
    if (!response.url().includes('/admin/v1/')) return;
    requests++;
    if (response.status() === 503) unavailable++;
  };
  page.on('response', count);
  const before = Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, treeMicros(pid)]));
  const load = loadavg()[0];
  await page.goto(`${url}/console/`);
  let ms;
  for (const deadline = performance.now() + OPEN_MS; ms === undefined; await sleep(20)) {
    ms = await page.evaluate('window.overviewWhole');
    if (performance.now() > deadline) {
      const failed = await page.evaluate('window.overviewFailed ?? document.body.innerText');
      throw new Error(`the overview is not whole after ${OPEN_MS / 1_000} s:\n${failed}`);
    }
  }
  page.off('response', count);
  const cpuMs = (name) => (treeMicros(pids[name]) - before[name]) / 1_000;
  return {
    ms,
    requests,
    unavailable,
    load,
    ...Object.fromEntries(Object.keys(pids).map((name) => [name, cpuMs(name)])),
  };
}

function print(title, opened) {
  const of = (field) => opened.map((one) => one[field]);
  const [least, most] = [Math.min(...of('ms')), Math.max(...of('ms'))];
  const sum = (field) => of(field).reduce((total, one) => total + one, 0);
  console.log(
    `${title}: ${median(of('ms')).toFixed(0)} ms until the last figure (${least.toFixed(0)} to ${most.toFixed(0)}, ` +
      `opened ${opened.length} times), ${sum('unavailable')} of ${sum('requests')} responses 503, processor time ` +
      `gateway ${median(of('gateway')).toFixed(0)} ms, Postgres ${median(of('postgres')).toFixed(0)} ms, browser ${median(of('browser')).toFixed(0)} ms; load average ` +
      `${Math.min(...of('load')).toFixed(1)} to ${Math.max(...of('load')).toFixed(1)}`,
  );
}
