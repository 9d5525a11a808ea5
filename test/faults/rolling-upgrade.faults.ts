import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import { AccountedLoad } from '../support/accounted-load.js';
import { eventually, timePasses } from '../support/eventually.js';
import { type Nginx, nginxMissing, startNginx } from '../support/front-nginx.js';
import { itNeeding, unsetVariables } from '../support/needing.js';
import { GatewayProcess } from '../support/process.js';
import { Workplace } from '../support/workplace.js';
import { unusedPort } from '../support/unused-port.js';

/**
 * The folder of an older checkout, with its build, and a database with its schema and a large log. Without them there is
 * nothing to upgrade. docs/guides/large-installations.md says how they are made.
 */
const { ROLLING_FROM, ROLLING_DATABASE_URL } = process.env;
const CLIENTS = 12;
const LOOK_MS = 20;

interface Replica {
  port: number;
  workplace: Workplace;
  gateway: GatewayProcess;
}

let load: AccountedLoad;
let nginx: Nginx;
let client: pg.Client;
const replicas: Replica[] = [];

let used = '';

/** What a load balancer with health checks does. */
async function useReady(): Promise<void> {
  const ready = await Promise.all(
    replicas.map(({ port }) =>
      fetch(`http://127.0.0.1:${port}/health/ready`).then(
        ({ ok }) => ok,
        () => false,
      ),
    ),
  );
  const ports = replicas.filter((_, i) => ready[i]).map(({ port }) => port);
  if (used !== ports.join()) await nginx.use(ports);
  used = ports.join();
}

/** Watches until stopped: when each migration was committed, how long the log was locked, and pauses of the calls. */
function watch() {
  const state = { running: true, pause: 0, locked: 0, migrations: [] as [string, number][] };
  const watching = (async () => {
    const watcher = new pg.Client({ connectionString: ROLLING_DATABASE_URL });
    await watcher.connect();
    let [answered, since, lockedSince, last] = [0, performance.now(), 0, performance.now()];
    const known = new Set<string>();
    while (state.running) {
      const now = performance.now();
      if (load.answered.size > answered) [answered, since] = [load.answered.size, now];
      state.pause = Math.max(state.pause, now - since);
      const { rows: locks } = await watcher.query(`
        SELECT FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation IN (
          SELECT 'request_log'::regclass UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = 'request_log'::regclass) LIMIT 1`);
      if (locks.length === 0) lockedSince = 0;
      else state.locked = Math.max(state.locked, now - (lockedSince ||= now));
      const { rows } = await watcher.query<{ name: string }>('SELECT name FROM migrations ORDER BY id');
      for (const { name } of rows) {
        if (known.size > 0 && !known.has(name)) state.migrations.push([name, Math.round(now - last)]);
        if (!known.has(name)) last = now;
      }
      if (state.migrations.length === 0) last = now;
      for (const { name } of rows) known.add(name);
      await timePasses(LOOK_MS, 'the pace of the watcher');
    }
    await watcher.end();
  })();
  return {
    stop: async () => {
      state.running = false;
      await watching;
      return state;
    },
  };
}

const digest = (key: string) => createHash('sha256').update(key).digest('hex');

async function upgrade(): Promise<void> {
  client = new pg.Client({ connectionString: ROLLING_DATABASE_URL });
  await client.connect();
  load = await AccountedLoad.start();
  // nginx ends kept connections when it reads its file again, and a client may be writing to one at that moment.
  load.keepsConnections = false;
  const settings = {
    ADMIN_TOKEN: randomBytes(32).toString('base64url'),
    MASTER_KEY: randomBytes(32).toString('base64'),
    DATABASE_URL: ROLLING_DATABASE_URL!,
    PROVIDER_URL: load.provider.url,
    SHUTDOWN_DELAY_MS: '2000',
    REQUEST_LOG_RETENTION_DAYS: '3650',
  };
  for (let i = 0; i < 2; i++) {
    const [workplace, port] = [await Workplace.make(), await unusedPort()];
    const env = { ...settings, PORT: `${port}`, DATA_DIR: workplace.dataDir };
    const gateway = GatewayProcess.ofCheckout(ROLLING_FROM!, workplace.folder, env);
    await gateway.ready();
    replicas.push({ port, workplace, gateway });
  }
  const made = await fetch(`http://127.0.0.1:${replicas[0]!.port}/admin/v1/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${settings.ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ team: 'seed team 1', name: `upgrade ${digest(settings.MASTER_KEY).slice(0, 8)}` }),
  });
  expect(made.status).toBe(201);
  const { key, id } = (await made.json()) as { key: string; id: string };
  const withoutTls = (site: string) => site.replace(' ssl;', ';').replace(/ssl_certificate.*\n/g, '\n');
  nginx = await startNginx(
    replicas.map(({ port }) => port),
    withoutTls,
  );
  let running = true;
  const balancing = (async () => {
    while (running) {
      await useReady();
      await timePasses(100, 'the pace of the balancer');
    }
  })();
  load.run(nginx.url, key, CLIENTS);
  await eventually(() => load.answered.size > 200, 60_000).catch((error: unknown) => {
    throw new Error(`no calls: ${JSON.stringify([...load.rejected].slice(0, 3))}`, { cause: error });
  });
  const watcher = watch();
  for (const replica of replicas) {
    const before = load.answered.size;
    await eventually(() => load.answered.size > before + 500, 120_000);
    expect(await replica.gateway.stop()).toEqual({ code: 0, signal: null });
    const env = { ...settings, PORT: `${replica.port}` };
    replica.gateway = replica.workplace.gateway(env);
    await replica.gateway.ready();
    await eventually(async () => (await fetch(`http://127.0.0.1:${replica.port}/health/ready`)).ok, 120_000);
  }
  const before = load.answered.size;
  await eventually(() => load.answered.size > before + 500, 120_000);
  const { pause, locked, migrations } = await watcher.stop();
  await load.stop();
  running = false;
  await balancing;
  for (const { gateway } of replicas) expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  const { rows } = await client.query<{ idempotency_key: string; outcome: string; status: number | null }>(
    `SELECT idempotency_key, outcome, status FROM request_log WHERE key_id = $1 AND started_at > now() - interval '1 hour'`,
    [id],
  );
  process.stdout.write(
    `${load.answered.size} calls answered, ${load.rejected.size} rejected, ${load.broken.size} broken; ${rows.length} rows; ` +
      `longest time without a response ${Math.round(pause)} ms; longest exclusive lock on the log ${Math.round(locked)} ms\n` +
      `${migrations.map(([name, ms]) => `${name} ${ms} ms`).join('\n')}\n`,
  );
  expect([...load.rejected, ...load.broken]).toEqual([]);
  expect(load.judge(rows)).toEqual([]);
}

itNeeding(
  unsetVariables('ROLLING_FROM', 'ROLLING_DATABASE_URL') ?? nginxMissing(),
  'upgrades two replicas of an older release one after the other, and no call fails',
  upgrade,
  900_000,
);

afterAll(async () => {
  await load?.close();
  await nginx?.stop();
  await client?.end();
  for (const { workplace } of replicas) await workplace.remove();
});
