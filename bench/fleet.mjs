// `npm run bench:fleet -- [CHECKOUT]`: what idle gateways ask of one Postgres. They are whole gateways of a built checkout.
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { startArgs } from './contenders/postern.mjs';
import { treeMicros } from './cpu-time.mjs';
import { withWorkplace } from './lifetime.mjs';
import { root } from './workplace.mjs';

const HELP = `Usage: npm run bench:fleet -- [options] [CHECKOUT]

Starts gateways of a built checkout (this one) that share one Postgres, and says for each what it asks of it while nobody
calls: statements, new connections, connections, and processor time of Postgres.

  --gateways N   (3)
  --seconds N    for which they are watched; some work is done once a minute (60)
  --node PATH    the Node.js to run them with (this one)`;
const SETTLE_MS = 20_000;
const SAMPLE_MS = 250;
const MAX_MS = 1_200_000;
/** Each statement is logged, with the purpose of its connection. */
const SETTINGS = { log_statement: 'all', log_line_prefix: '[%a] ', max_connections: 500 };
const STATEMENT = /^\[postern\S*\] LOG: {2}(?:statement|execute [^:]*):/gm;
/** With which each connection begins. */
const BEGUN = /SELECT set_config\(name, value, false\)/g;
const COUNT = `
  SELECT application_name AS purpose, count(*)::int AS count FROM pg_stat_activity
  WHERE datname = current_database() AND application_name LIKE 'postern%' GROUP BY 1`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    gateways: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '60' },
    node: { type: 'string', default: process.execPath },
    help: { type: 'boolean', default: false },
  },
});
if (values.help || positionals.length > 1) {
  console.log(HELP);
  process.exit(values.help ? 0 : 1);
}
const GATEWAYS = Number(values.gateways);

await withWorkplace(MAX_MS, run, { postgresSettings: SETTINGS, isPinned: false });

async function run({ workplace, postgres }) {
  const { url } = await postgres.createDatabase();
  const { flags, entry } = startArgs(resolve(positionals[0] ?? root));
  const masterKey = Buffer.alloc(32, 7).toString('base64');
  for (let i = 1; i <= GATEWAYS; i++)
    await workplace.start([values.node, ...flags, entry], {
      name: `gateway ${i}`,
      cores: workplace.cores.gateway,
      ready: (text) => /ready on /.test(text) && {},
      env: {
        PORT: '0',
        DATA_DIR: join(workplace.folder, `gateway-${i}`),
        DATABASE_URL: url,
        MASTER_KEY: masterKey,
        PROVIDER_URL: 'http://127.0.0.1:9',
        PROVIDER_KEY: 'sk-provider',
        LOG_LEVEL: 'warn',
      },
    });
  await sleep(SETTLE_MS);
  const client = new pg.Client({ connectionString: url, application_name: 'bench' });
  await client.connect();
  const { length: logged } = await postgres.log();
  const before = { at: performance.now(), micros: treeMicros(postgres.pid) };
  const connections = await sampled(client);
  const seconds = (performance.now() - before.at) / 1_000;
  const micros = treeMicros(postgres.pid) - before.micros;
  const log = (await postgres.log()).slice(logged);
  await client.end();
  const each = (sum, digits = 1) => (sum / GATEWAYS).toFixed(digits);
  const line = (name, text) => console.log(`${name.padEnd(26)}${text}`);
  line('idle gateways', String(GATEWAYS));
  line('each: statements a second', each(log.match(STATEMENT).length / seconds, 2));
  line('new connections a minute', each(((log.match(BEGUN) ?? []).length / seconds) * 60));
  line('connections', `${each(connections.sum / connections.samples)}, at most ${each(connections.most)}`);
  line('Postgres', `${each(micros / seconds / 1e4, 2)} % of a core, with what the log and the samples take`);
  line('most of all gateways', JSON.stringify(connections.byPurpose));
}

async function sampled(client) {
  const found = { samples: 0, sum: 0, most: 0, byPurpose: {} };
  const until = performance.now() + Number(values.seconds) * 1_000;
  for (; performance.now() < until; await sleep(SAMPLE_MS)) {
    const { rows } = await client.query(COUNT);
    const open = rows.reduce((sum, { count }) => sum + count, 0);
    found.samples++;
    found.sum += open;
    found.most = Math.max(found.most, open);
    for (const { purpose, count } of rows)
      found.byPurpose[purpose] = Math.max(found.byPurpose[purpose] ?? 0, count);
  }
  return found;
}
