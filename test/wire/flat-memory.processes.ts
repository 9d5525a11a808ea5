import type { Server } from 'node:net';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { PROVIDER_KEY } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import type { GatewayProcess } from '../support/process.js';
import { FULL } from '../support/scale.js';
import { dial, pour, readHead, residentBytes, sip, startBulkProvider } from '../support/transfers.js';
import { Workplace } from '../support/workplace.js';

const BYTES = FULL ? 1_000_000_000 : 200_000_000;
const MEGABYTE = 1_000_000;
/** What a transfer may add to the most that one of its size has needed before. */
const GROWTH = 30 * MEGABYTE;
/** And what it may need at all: V8's young generation grows by use, but to hold a whole transfer takes more than this. */
const NEED = 150 * MEGABYTE;

let database: TestDatabase;
let place: Workplace;
let gateway: GatewayProcess;
let provider: Server;
let url: string;
let key: string;
let idle: number;

beforeAll(async () => {
  const bulk = await startBulkProvider();
  provider = bulk.server;
  [database, place] = await Promise.all([createDatabase(), Workplace.make()]);
  gateway = place.gateway({ DATABASE_URL: database.url, PROVIDER_URL: bulk.url, PROVIDER_KEY });
  [url, key] = await Promise.all([gateway.ready(), gateway.firstKey()]);
  idle = residentBytes(gateway.process.pid);
});
afterAll(async () => {
  await gateway.stop();
  await place.remove();
  await new Promise((resolve) => provider.close(resolve));
  await database.drop();
});

/** One transfer; @returns the most memory the gateway held during it */
async function transfer(headers: string, run: (socket: Awaited<ReturnType<typeof dial>>) => Promise<void>) {
  let most = 0;
  const sampler = setInterval(() => (most = Math.max(most, residentBytes(gateway.process.pid))), 100);
  const socket = await dial(url);
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n${headers}\r\n\r\n`,
  );
  await run(socket);
  socket.destroy();
  clearInterval(sampler);
  return Math.max(most, residentBytes(gateway.process.pid));
}

async function expectFlat(once: () => Promise<number>): Promise<void> {
  let last = await once();
  let growth = Infinity;
  // What a busy machine collects late is not what each transfer adds.
  for (let more = 0; more < 3 && growth >= GROWTH; more++) {
    const next = await once();
    growth = next - last;
    last = next;
  }
  const [need, grown] = [last - idle, growth].map((bytes) => Math.round(bytes / MEGABYTE));
  process.stdout.write(
    `  ${BYTES / MEGABYTE} MB: ${need} MB over the idle process, the last ${grown} more\n`,
  );
  expect(growth).toBeLessThan(GROWTH);
  expect(last - idle).toBeLessThan(NEED);
}

it(`${BYTES / MEGABYTE} MB down to a slow reader`, async () => {
  await expectFlat(() =>
    transfer(`X-Pour: ${BYTES}\r\nContent-Length: 0`, async (socket) => {
      expect(await readHead(socket)).toMatch(/^HTTP\/1\.1 200 /);
      await sip(socket, BYTES);
    }),
  );
});

never(`${BYTES / MEGABYTE} MB up to a slow provider`, async () => {
  await expectFlat(() =>
    transfer(`Content-Length: ${BYTES}`, async (socket) => {
      const answered = readHead(socket);
      await Promise.all([pour(socket, BYTES), answered]);
      expect(await answered).toMatch(/^HTTP\/1\.1 200 /);
    }),
  );
});

const LEFT = 60_000_000;
const CALLS = 8;
it(`${CALLS} × ${LEFT / MEGABYTE} MB that are read to the end after their clients have left`, async () => {
  await database.query(`UPDATE gateway_key SET on_disconnect = 'finish'`);
  const finished = async () => {
    const [row] = await database.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM request_log WHERE outcome = 'client_aborted' AND error_code IS NULL`,
    );
    return row!.count;
  };
  await expectFlat(async () => {
    const before = await finished();
    let most = 0;
    const leave = () =>
      transfer(`X-Pour: ${LEFT}\r\nContent-Length: 0`, async (socket) => {
        expect(await readHead(socket)).toMatch(/^HTTP\/1\.1 200 /);
      });
    await Promise.all(Array.from({ length: CALLS }, leave));
    await eventually(async () => {
      most = Math.max(most, residentBytes(gateway.process.pid));
      return (await finished()) === before + CALLS;
    });
    return most;
  });
});
