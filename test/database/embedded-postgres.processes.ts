import { spawn } from 'node:child_process';
import { chmod, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Client } from 'pg';
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../src/embedded-postgres/embedded-postgres.js';
import { postgresPackage } from '../../src/embedded-postgres/binaries.js';
import { isAlive, readPidFile } from '../../src/embedded-postgres/server-process.js';
import { removeFolder, temporaryFolder } from '../config/temporary-folder.js';
import { eventually } from '../support/eventually.js';

let base: string;
let servers: EmbeddedPostgres[];
let reported: string[];

// One cluster for all tests; no test cares whether it was there before.
beforeAll(async () => {
  base = await temporaryFolder();
});
afterAll(() => removeFolder(base));
beforeEach(() => {
  servers = [];
  reported = [];
});
afterEach(async () => {
  for (const server of servers) await server.stop();
});

async function start(fsync = false, dataDir = base): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, fsync, report: (line) => reported.push(line) });
  servers.push(server);
  return server;
}

async function query<T>(url: string, sql: string): Promise<T[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<T & object>(sql)).rows;
  } finally {
    await client.end();
  }
}

const portOf = (server: EmbeddedPostgres) => Number(new URL(server.url).port);

it('creates, accepts queries, stops, and starts again with the data, on the port of before', async () => {
  const fresh = await temporaryFolder();
  const first = await start(true, fresh);
  expect(first).toMatchObject({ folder: join(fresh, 'postgres'), attached: false });
  expect(reported).toEqual([`creating the database in ${first.folder}`, 'starting Postgres']);
  await query(first.url, 'CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)');
  const pid = (await readPidFile(join(first.folder, 'cluster')))?.pid ?? 0;
  await first.stop();
  await eventually(() => !isAlive(pid));
  await first.stop();

  const second = await start(true, fresh);
  expect(second).toMatchObject({ url: first.url, attached: false });
  expect(await query(second.url, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
  await second.stop();
  await removeFolder(fresh);
});

it('is set up for a gateway: UTF8, C order, UTC, scram, durable, and only on the loopback', async () => {
  const { url, folder } = await start(true);
  const shown = async (name: string) =>
    Object.values((await query<object>(url, `SHOW ${name}`))[0] ?? {})[0] as string;
  const expected: Record<string, string> = {
    server_encoding: 'UTF8',
    TimeZone: 'UTC',
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    shared_buffers: '128MB',
    max_connections: '100',
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    password_encryption: 'scram-sha-256',
  };
  for (const [name, value] of Object.entries(expected))
    expect([name, await shown(name)]).toEqual([name, value]);
  const sql = `SELECT datlocprovider, datlocale, datcollate FROM pg_database WHERE datname = 'postern'`;
  expect(await query(url, sql)).toEqual([{ datlocprovider: 'b', datlocale: 'C.UTF-8', datcollate: 'C' }]);
  expect((await readFile(join(folder, 'cluster', 'pg_hba.conf'), 'utf8')).match(/\btrust$/gm)).toBeNull();
  expect((await stat(join(folder, 'password'))).mode & 0o777).toBe(0o600);
  expect((await stat(join(folder, 'cluster'))).mode & 0o777).toBe(0o700);

  const wrong = new URL(url);
  wrong.password = 'guess';
  await expect(query(wrong.href, 'SELECT 1')).rejects.toThrow('password authentication failed');
});

it('has no durability for tests that ask for none', async () => {
  const { url } = await start(false);
  expect(await query(url, 'SHOW fsync')).toEqual([{ fsync: 'off' }]);
});

it('keeps nothing of our environment in the server', async () => {
  const { folder } = await start();
  const pid = (await readPidFile(join(folder, 'cluster')))?.pid;
  const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => 'PATH=');
  expect(environment).not.toContain('HOME=');
  expect(environment).toContain('PATH=');
});

it('joins a running server, and stops it from there', async () => {
  const first = await start();
  const second = await start();
  expect(second).toMatchObject({ url: first.url, folder: first.folder, attached: true });
  await second.stop();
  await expect(query(first.url, 'SELECT 1')).rejects.toThrow('ECONNREFUSED');
  expect((await start()).attached).toBe(false);
});

it('is stopped also when its folder has been removed, and none is made', async () => {
  const fresh = await temporaryFolder();
  const server = await start(false, fresh);
  await removeFolder(fresh);
  await server.stop();
  await expect(query(server.url, 'SELECT 1')).rejects.toThrow('ECONNREFUSED');
  await expect(stat(fresh)).rejects.toThrow('ENOENT');
});

it('leaves the server to others when told to', async () => {
  const server = await start();
  const other = new Client({ connectionString: server.url });
  await other.connect();
  await server.stop({ onlyIfUnused: true });
  await other.query('SELECT 1');
  await other.end();
  await server.stop({ onlyIfUnused: true });
  await expect(query(server.url, 'SELECT 1')).rejects.toThrow('ECONNREFUSED');
  await server.stop({ onlyIfUnused: true });
});

it('takes another port when the last one is in use, and remembers that', async () => {
  const first = await start();
  await first.stop();
  const squatter = createServer().listen(portOf(first), '127.0.0.1');
  const second = await start();
  expect(portOf(second)).not.toBe(portOf(first));
  squatter.close();
  await second.stop();
  expect(portOf(await start())).toBe(portOf(second));
});

it('ignores a port file that was damaged', async () => {
  const first = await start();
  await first.stop();
  await writeFile(join(first.folder, 'port'), 'eighty');
  expect(portOf(await start())).toBeGreaterThan(1023);
});

it('keeps one older log and starts a new one when it has grown', async () => {
  const server = await start();
  const { folder } = server;
  await server.stop();
  await truncate(join(folder, 'server.log'), 5 * 1024 * 1024);
  await start();
  expect((await stat(join(folder, 'server.log'))).size).toBeLessThan(10_000);
  expect(await readdir(folder)).toContain('server.log.1');
});

it('works in a folder whose name a shell would change', async () => {
  const parent = await temporaryFolder();
  await chmod(parent, 0o755);
  const folder = join(parent, `it's "a" $HOME \`of\` \\ its own`);
  const server = await start(false, folder);
  expect(server.folder).toBe(join(folder, 'postgres'));
  expect(await query(server.url, 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
  await server.stop();
  await expect(query(server.url, 'SELECT 1')).rejects.toThrow('ECONNREFUSED');
  await removeFolder(parent);
});

it('runs in a session of its own, which Ctrl-C does not reach', async () => {
  const { folder } = await start();
  const pid = (await readPidFile(join(folder, 'cluster')))?.pid ?? 0;
  const ps = spawn('ps', ['-o', 'pgid=', '-p', String(pid)]);
  const output = await new Promise<string>((done) =>
    ps.stdout.on('data', (chunk: Buffer) => done(String(chunk))),
  );
  expect(Number(output)).toBe(pid);
});

it('says what to do on a platform without binaries', async () => {
  await expect(postgresPackage('sunos', 'sparc')).rejects.toThrow(
    /^no embedded Postgres is installed for sunos-sparc; set DATABASE_URL to use another Postgres/,
  );
});

it('is not left running by a start that cannot make its database', async () => {
  const fresh = await temporaryFolder();
  const server = await start(false, fresh);
  const maintenance = Object.assign(new URL(server.url), { pathname: '/postgres' }).href;
  await query(maintenance, 'DROP DATABASE postern');
  await query(maintenance, 'ALTER DATABASE template1 RENAME TO elsewhere');
  await server.stop();
  await expect(start(false, fresh)).rejects.toThrow('template database "template1" does not exist');
  expect(await readPidFile(join(server.folder, 'cluster'))).toBeNull();
  await removeFolder(fresh);
});
