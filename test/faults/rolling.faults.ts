import { randomBytes } from 'node:crypto';
import { AccountedLoad } from '../support/accounted-load.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually, timePasses } from '../support/eventually.js';
import { type Nginx, nginxMissing, startNginx } from '../support/front-nginx.js';
import { rowsOf } from '../support/kill-rounds.js';
import { itNeeding } from '../support/needing.js';
import type { GatewayProcess } from '../support/process.js';
import { Workplace } from '../support/workplace.js';
import { unusedPort } from '../support/unused-port.js';

const ROUNDS = 5;
const CLIENTS = 24;
const DELAY_MS = 2_000;
const LOOK_MS = 100;

interface Replica {
  port: number;
  workplace: Workplace;
  settings: Record<string, string>;
  gateway: GatewayProcess;
}

let database: TestDatabase;
let load: AccountedLoad;
let nginx: Nginx;
const replicas: Replica[] = [];

async function addReplica(secrets: Record<string, string>): Promise<void> {
  const workplace = await Workplace.make();
  const port = await unusedPort();
  const settings = {
    ...secrets,
    DATABASE_URL: database.url,
    PROVIDER_URL: load.provider.url,
    PORT: `${port}`,
    SHUTDOWN_DELAY_MS: `${DELAY_MS}`,
  };
  const gateway = workplace.gateway(settings);
  await gateway.ready();
  replicas.push({ port, workplace, settings, gateway });
}

/** What a load balancer with health checks does: looks at /health/ready, and away from what is not. */
function watch(): { used(): number[]; stop(): Promise<void> } {
  let running = true;
  let used: number[] = [];
  const isReady = ({ port }: Replica) =>
    fetch(`http://127.0.0.1:${port}/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  const watching = (async () => {
    while (running) {
      const verdicts = await Promise.all(replicas.map(isReady));
      const ports = replicas.filter((_, i) => verdicts[i]).map(({ port }) => port);
      if (used.join() !== ports.join()) await nginx.use(ports);
      used = ports;
      await timePasses(LOOK_MS, 'the pace of the balancer');
    }
  })();
  return {
    used: () => used,
    stop: () => {
      running = false;
      return watching;
    },
  };
}

async function rolling(): Promise<void> {
  database = await createDatabase();
  load = await AccountedLoad.start();
  // nginx ends kept connections when it reads its file again, and a client may be writing to one at that moment.
  load.keepsConnections = false;
  const secrets = {
    ADMIN_TOKEN: randomBytes(32).toString('base64url'),
    MASTER_KEY: randomBytes(32).toString('base64'),
  };
  for (let i = 0; i < 2; i++) await addReplica(secrets);
  const key = await replicas[0]!.gateway.firstKey();
  const withoutTls = (site: string) => site.replace(' ssl;', ';').replace(/ssl_certificate.*\n/g, '\n');
  nginx = await startNginx(
    replicas.map(({ port }) => port),
    withoutTls,
  );
  const watcher = watch();
  load.run(nginx.url, key, CLIENTS);
  for (let round = 0; round < ROUNDS; round++) {
    for (const replica of replicas) {
      // Both serve, and have for a while.
      const before = load.answered.size;
      await eventually(() => load.answered.size > before + 500);
      expect(await replica.gateway.stop()).toEqual({ code: 0, signal: null });
      replica.gateway = replica.workplace.gateway(replica.settings);
      await replica.gateway.ready();
      await eventually(() => watcher.used().length === replicas.length);
    }
  }
  await load.stop();
  await watcher.stop();
  for (const { gateway } of replicas) expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  const rows = await rowsOf(database);
  process.stdout.write(
    `${2 * ROUNDS} restarts: ${load.answered.size} calls answered, ${load.left.size} left by their clients, ` +
      `${load.rejected.size} rejected, ${load.broken.size} broken; ${rows.length} rows\n`,
  );
  expect([...load.rejected, ...load.broken]).toEqual([]);
  expect(load.judge(rows)).toEqual([]);
}

itNeeding(nginxMissing(), 'restarts two replicas one after the other, and no call fails', rolling, 600_000);

afterAll(async () => {
  await load?.close();
  await nginx?.stop();
  for (const { workplace } of replicas) await workplace.remove();
  await database?.drop();
});
