import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { waitingJournals, withFault } from '../support/kill-rounds.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { complete, send, Site } from '../support/site.js';
import { workersOf } from '../support/workers.js';
import { isAlive, Workplace } from '../support/workplace.js';

let site: Site;
let database: TestDatabase;
let workplace: Workplace;
let provider: RawProvider;
let key: string;

beforeEach(async () => {
  site = await Site.make({
    script: async ({ body, head, socket }) => {
      await body;
      if (!head.includes('x-hang')) socket.write(answer('200 OK', [], 'ok'));
    },
  });
  ({ database, workplace, provider } = site);
});
afterEach(() => site.remove());

const start = (workers = '2', more: Record<string, string> = {}) =>
  site.gateway({ WORKERS: workers, ...more });

const inJournal = () => readdir(join(workplace.dataDir, 'journal'));
const journals = async () => (await waitingJournals(workplace.dataDir)).map((run) => basename(run));
const reserves = async () => (await inJournal()).filter((name) => name.startsWith('reserve'));
const rows = () =>
  database.query<{ id: string; outcome: string }>('SELECT id, outcome FROM request_log ORDER BY id');

it('shares the port and the work, and prints what there is to say once', async () => {
  const gateway = start();
  const url = await gateway.ready();
  key = await gateway.firstKey();
  expect(await workersOf(gateway.process.pid)).toHaveLength(2);
  const ids = await Promise.all(Array.from({ length: 40 }, () => complete(url, key)));
  await eventually(async () => (await rows()).length === 40);
  expect((await rows()).map(({ id }) => id)).toEqual(ids.sort());
  const writers = await database.query<{ n: number }>(
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'postern-log'",
  );
  expect(writers).toEqual([{ n: 2 }]);
  expect((await journals()).map((name) => name.slice(36)).sort()).toEqual(['', '.2']);
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  expect(gateway.process.stdout.match(/ready on/g)).toHaveLength(1);
  expect(gateway.process.stdout.match(/shown only once/g)).toHaveLength(1);
  expect(await journals()).toEqual([]);
});

it('replaces a worker that dies, and its journal comes to Postgres', async () => {
  const gateway = start();
  const url = await gateway.ready();
  key = await gateway.firstKey();
  // Every worker has a call that hangs and one that has ended.
  const hanging = await Promise.all(Array.from({ length: 6 }, () => send(url, key, ['x-hang: 1'])));
  await eventually(() => provider.requests.length === 6);
  const before = await workersOf(gateway.process.pid);
  process.kill(before[1]!, 'SIGKILL');
  await eventually(
    async () => (await workersOf(gateway.process.pid)).filter((pid) => !before.includes(pid)).length === 1,
    20_000,
  );
  const lost = await eventually(async () => {
    const cut = (await rows()).filter(({ outcome }) => outcome === 'interrupted');
    return cut.length > 0 && cut;
  });
  // Those of the other worker go on.
  expect(lost.length).toBeLessThan(6);
  for (let i = 0; i < 20; i++) await complete(url, key);
  expect(await workersOf(gateway.process.pid)).toHaveLength(2);
  for (const client of hanging) client.destroy();
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  const all = await rows();
  expect(all).toHaveLength(26);
  expect(all.filter(({ outcome }) => outcome === 'interrupted')).toHaveLength(lost.length);
});

it('dies with its primary at once, and the next start brings every journal, also with fewer workers', async () => {
  const killed = start('3');
  const url = await killed.ready();
  key = await killed.firstKey();
  const hanging = await Promise.all(Array.from({ length: 9 }, () => send(url, key, ['x-hang: 1'])));
  await eventually(() => provider.requests.length === 9);
  const orphans = await workersOf(killed.process.pid);
  await killed.process.kill();
  await eventually(() => !orphans.some(isAlive));
  for (const client of hanging) client.destroy();
  const next = start('1');
  await next.ready();
  await eventually(async () => (await rows()).length === 9);
  expect((await rows()).every(({ outcome }) => outcome === 'interrupted')).toBe(true);
  await eventually(async () => (await journals()).length === 1);
  await eventually(async () => (await reserves()).join() === 'reserve');
  expect(await next.stop()).toEqual({ code: 0, signal: null });
});

it('says once what ails all workers, and leaves none', async () => {
  const taken = Number(new URL(provider.url).port);
  const gateway = start('2', { PORT: String(taken) });
  expect((await gateway.process.ended).code).toBe(1);
  expect(gateway.process.stderr).toBe(
    `postern: 127.0.0.1:${taken} is in use by another process; stop it or set PORT to a free port\n`,
  );
});

it('says why a worker did not stop well, and exits 1', async () => {
  const gateway = start('2', withFault({ at: 'close', do: 'EIO' }));
  await gateway.ready();
  expect(await gateway.stop()).toEqual({ code: 1, signal: null });
  expect(gateway.process.stderr).toMatch(/^postern: Error: EIO: injected$/m);
});

it('lets calls end when it is stopped, and cuts them at a second signal', async () => {
  const gateway = start();
  const url = await gateway.ready();
  key = await gateway.firstKey();
  const client = await send(url, key, ['x-hang: 1']);
  await eventually(() => provider.requests.length === 1);
  const workers = await workersOf(gateway.process.pid);
  gateway.process.signal('SIGTERM');
  await gateway.process.until(/stopping/);
  for (const pid of workers) process.kill(pid, 'SIGTERM');
  provider.requests[0]!.socket.write(answer('200 OK', [], 'late'));
  expect((await client.answer()).body.toString()).toBe('late');
  expect(await gateway.process.ended).toEqual({ code: 0, signal: null });

  const second = start();
  await send(await second.ready(), key, ['x-hang: 1']);
  await eventually(() => provider.requests.length === 2);
  const pids = await workersOf(second.process.pid);
  second.process.signal('SIGTERM');
  await second.process.until(/stopping/);
  second.process.signal('SIGTERM');
  expect((await second.process.ended).code).toBe(1);
  await eventually(() => !pids.some(isAlive));
});
