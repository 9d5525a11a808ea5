import { readFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../support/eventually.js';
import { filesHolding, fingerprint } from '../support/files-below.js';
import type { GatewayProcess } from '../support/process.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { Workplace } from '../support/workplace.js';

/** The two locks count their holders in file names. */
const CLAIM = /lock\/claim-\d+$/;

// One data folder with an embedded Postgres goes through its life; a test finds it stopped, unless the one before left it
// for it to kill.
let workplace: Workplace;
let provider: RawProvider;
let key: string;
let first: GatewayProcess;
let adminToken: string;

beforeAll(async () => {
  workplace = await Workplace.make();
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'ok'));
  });
  first = start();
  key = await first.firstKey();
  adminToken = (await readFile(await adminTokenFile(first), 'utf8')).trim();
  expect(await call(await first.ready())).toBe(200);
  expect(await first.stop()).toEqual({ code: 0, signal: null });
});
afterAll(async () => {
  await workplace.remove();
  await provider.stop();
});

const start = () => workplace.gateway({ PROVIDER_URL: provider.url, PROVIDER_KEY: 'sk-provider-0123456789' });
const adminTokenFile = async (gateway: GatewayProcess) =>
  (await gateway.process.until(/the admin token is in (.+)$/m))[1]!;

const send = (url: string) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: '{}',
  });
const call = async (url: string) => (await send(url)).status;

async function list(url: string, what: string): Promise<{ id: string }[]> {
  const headers = { authorization: `Bearer ${adminToken}` };
  const response = await fetch(`${url}/admin/v1/${what}`, { headers });
  expect(response.status).toBe(200);
  return ((await response.json()) as { data: { id: string }[] }).data;
}

it('stops the embedded Postgres with itself', async () => {
  expect(await workplace.postgresPid()).toBeNull();
});

it('prints the first key once and keeps it nowhere; prints no other secret', async () => {
  const printed = first.process.stdout + first.process.stderr;
  expect(printed.split('\n').filter((line) => line.includes(key))).toEqual([
    `postern: your first gateway key (team "default"), shown only once: ${key}`,
    `    -H 'Authorization: Bearer ${key}' \\`,
  ]);
  const masterKey = (await readFile(join(workplace.dataDir, 'secrets', 'master-key'), 'utf8')).trim();
  const password = (await readFile(join(await workplace.cluster(), '..', 'password'), 'utf8')).trim();
  for (const secret of [adminToken, masterKey, password, 'sk-provider-0123456789']) {
    expect(printed).not.toContain(secret);
  }
  expect(await filesHolding(workplace.folder, [key, key.slice(12), 'sk-provider-0123456789'])).toEqual([]);
  expect(await filesHolding(workplace.folder, [adminToken])).toEqual(['data/secrets/admin-token']);
});

it('colours nothing that goes to a pipe or a file', () => {
  expect(first.process.stdout).toContain('Migrated the database');
  expect(first.process.stdout + first.process.stderr).not.toContain('\u001b');
});

it('keeps its secrets to its owner', async () => {
  for (const name of ['admin-token', 'master-key']) {
    expect((await stat(join(workplace.dataDir, 'secrets', name))).mode & 0o777).toBe(0o600);
  }
});

let second: GatewayProcess;

it('creates nothing twice on a second start', async () => {
  second = start();
  const url = await second.ready();
  expect((await readFile(await adminTokenFile(second), 'utf8')).trim()).toBe(adminToken);
  expect(await list(url, 'teams')).toHaveLength(1);
  expect(await list(url, 'keys')).toHaveLength(1);
  expect(await call(url)).toBe(200);
  expect(second.process.stdout).not.toMatch(/ptn_|curl|creating/);
  // The first start prints the key itself.
  await second.process.until(/^postern: your gateway keys: \.\/postern keys list; /m);
  expect(first.process.stdout).not.toContain('keys list');
});

it('joins the Postgres that a killed gateway left running', async () => {
  const pid = await workplace.postgresPid();
  expect(pid).not.toBeNull();
  await second.process.kill();
  expect(await workplace.postgresPid()).toBe(pid);

  const next = start();
  const url = await next.ready();
  expect(await workplace.postgresPid()).toBe(pid);
  const { status, headers } = await send(url);
  expect(status).toBe(200);
  const id = headers.get('x-gateway-request-id');
  await eventually(async () => (await list(url, 'requests')).some((row) => row.id === id));
  expect(await next.stop()).toEqual({ code: 0, signal: null });
  expect(await workplace.postgresPid()).toBeNull();
});

it('leaves no Postgres behind when it is stopped before it serves', async () => {
  // It may serve before a busy machine gets to the signal.
  await eventually(async () => {
    const stopped = start();
    await stopped.process.until(/starting Postgres/);
    expect(await stopped.stop()).toEqual({ code: 0, signal: null });
    expect(await workplace.postgresPid()).toBeNull();
    return !stopped.process.stdout.includes('ready on');
  });
});

it('rejects a damaged database, says what to do and changes nothing', async () => {
  const cluster = await workplace.cluster();
  await rename(join(cluster, 'global', 'pg_control'), join(cluster, 'global', 'gone'));
  const before = await fingerprint(workplace.folder, CLAIM);
  const { process } = start();
  expect(await process.ended).toEqual({ code: 1, signal: null });
  expect(process.stderr.split('\n')[0]).toBe(
    `postern: the database in ${cluster} cannot be used: global/pg_control is missing; restore it from a backup, ` +
      'or rename the folder to start with an empty one, or set DATABASE_URL to use another Postgres. ' +
      'Nothing was changed.',
  );
  expect(await fingerprint(workplace.folder, CLAIM)).toEqual(before);
  expect(await workplace.postgresPid()).toBeNull();
});
