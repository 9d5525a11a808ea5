import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../src/embedded-postgres/embedded-postgres.js';
import { readPidFile } from '../../src/embedded-postgres/server-process.js';
import { Child, compileSources } from '../config/processes.js';
import { removeFolder, temporaryFolder } from '../config/temporary-folder.js';
import { timePasses } from '../support/eventually.js';
import { FULL } from '../support/scale.js';

let compiled: string;
let base: string;
let cluster: string;
let children: Child[];

// One cluster for all; those that are about its creation go to a new folder.
beforeAll(async () => {
  compiled = await compileSources();
  base = await temporaryFolder();
  cluster = join(base, 'postgres', 'cluster');
});
afterAll(async () => {
  await removeFolder(compiled);
  await removeFolder(base);
});
beforeEach(() => {
  children = [];
});
afterEach(async () => {
  for (const child of children) await child.kill();
  await (await start()).stop();
});

// With fsync: a cluster without it may lose its last commits when it is killed.
const start = (dataDir = base) => startEmbeddedPostgres({ dataDir, fsync: true });
const serverPid = async () => (await readPidFile(cluster))?.pid ?? 0;

function gateway(dataDir = base): Child {
  const child = new Child(
    compiled,
    `import { startEmbeddedPostgres } from './embedded-postgres/embedded-postgres.js';
     const report = (line) => console.log('report', line);
     const { url, attached } = await startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)}, fsync: true, report });
     console.log('ready', JSON.stringify({ url, attached }));
     setInterval(() => {}, 1000);`,
  );
  children.push(child);
  return child;
}

const ready = async (child: Child) => JSON.parse(await child.line('ready ')) as EmbeddedPostgres;

async function write(url: string, n: number): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query('DROP TABLE IF EXISTS kept; CREATE TABLE kept (n int)');
  await client.query('INSERT INTO kept VALUES ($1)', [n]);
  await client.end();
}

async function rows(url: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const result = await client.query<{ n: number }>('SELECT n FROM kept ORDER BY n');
  await client.end();
  return result.rows.map((row) => row.n);
}

it('re-attaches after kill -9 of the gateway', async () => {
  const killed = gateway();
  const { url } = await ready(killed);
  await write(url, 1);
  const pid = await serverPid();
  await killed.kill();
  const server = await start();
  expect(server).toMatchObject({ url, attached: true });
  expect(await serverPid()).toBe(pid);
  expect(await rows(url)).toEqual([1]);
});

it('starts after kill -9 of the server', async () => {
  const { url } = await start();
  await write(url, 2);
  process.kill(await serverPid(), 'SIGKILL');
  const server = await start();
  expect(server).toMatchObject({ url, attached: false });
  expect(await rows(url)).toEqual([2]);
});

it('starts when the pid of a dead server belongs to somebody else now', async () => {
  const first = await start();
  await write(first.url, 3);
  const pidFile = await readFile(join(cluster, 'postmaster.pid'), 'utf8');
  await first.stop();
  // As the server's own user: with kill -0 Postgres itself would take that process for its predecessor.
  const owner = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  const stranger = spawn('sleep', ['60'], { stdio: 'ignore', ...owner });
  try {
    await writeFile(join(cluster, 'postmaster.pid'), pidFile.replace(/^\d+/, String(stranger.pid)));
    const server = await start();
    expect(server.attached).toBe(false);
    expect(await rows(server.url)).toEqual([3]);
    expect(stranger.exitCode).toBeNull();
  } finally {
    stranger.kill();
  }
});

it('does not stop a stranger that has the pid of a dead server', async () => {
  const first = await start();
  const pidFile = await readFile(join(cluster, 'postmaster.pid'), 'utf8');
  await first.stop();
  const stranger = spawn('cat', { stdio: ['pipe', 'pipe', 'ignore'] });
  try {
    await writeFile(join(cluster, 'postmaster.pid'), pidFile.replace(/^\d+/, String(stranger.pid)));
    await first.stop();
    // A signal would have ended it before it could read this.
    stranger.stdin.write('still there');
    const [echoed] = (await Promise.race([
      once(stranger.stdout, 'data'),
      once(stranger, 'exit'),
    ])) as unknown[];
    expect(String(echoed)).toBe('still there');
  } finally {
    stranger.kill();
  }
});

it('waits for a server that is just shutting down, then starts', async () => {
  const { url } = await start();
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  process.kill(await serverPid(), 'SIGINT');
  const server = await start();
  await write(server.url, 4);
  expect(await rows(server.url)).toEqual([4]);
});

it.each(FULL ? [60, 200, 350, 500] : [200])(
  'creates the database again after kill -9 %i ms into the first start',
  async (after) => {
    const fresh = await temporaryFolder();
    const killed = gateway(fresh);
    await killed.line('report creating');
    await timePasses(after, 'the kill comes at different moments of the start');
    await killed.kill();
    const server = await start(fresh);
    await write(server.url, 5);
    expect(await rows(server.url)).toEqual([5]);
    expect((await readdir(join(fresh, 'postgres'))).filter((name) => name.startsWith('new-'))).toEqual([]);
    await server.stop();
    await removeFolder(fresh);
  },
);

it('gives one server to many starters at once, on a new folder', async () => {
  const fresh = await temporaryFolder();
  const starters = Array.from({ length: 4 }, () => gateway(fresh));
  const servers = await Promise.all(starters.map(ready));
  expect(new Set(servers.map((server) => server.url)).size).toBe(1);
  expect(servers.filter((server) => !server.attached)).toHaveLength(1);
  expect(starters.flatMap((child) => child.output).filter((line) => line.includes('creating'))).toHaveLength(
    1,
  );
  await (await start(fresh)).stop();
  await removeFolder(fresh);
});

it('keeps starts and stops apart', async () => {
  const server = await start();
  const turns = await Promise.all([server.stop(), start(), server.stop(), start(), start()]);
  const last = await start();
  await write(last.url, 6);
  expect(turns).toHaveLength(5);
});
