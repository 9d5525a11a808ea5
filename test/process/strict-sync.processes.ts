import { eventually } from '../support/eventually.js';
import { withFault } from '../support/kill-rounds.js';
import type { GatewayProcess } from '../support/process.js';
import { answer, chunk, LAST_CHUNK, RawProvider } from '../support/raw-provider.js';
import { send, Site } from '../support/site.js';

/*
 * JOURNAL_FSYNC_MS=0: the first byte of an answer comes after the sync of the beginning, the last after the sync of the
 * end. The shim around the gateway holds each sync until SIGUSR2 and prints the order of appends, syncs and writes to
 * the client's socket.
 */

let site: Site;
let provider: RawProvider;
let gateway: GatewayProcess;
let url: string;
let key: string;
/** Lines of the trace, and requests, that belong to the tests before. */
let earlierLines: number;
let earlierRequests: number;

beforeAll(async () => {
  site = await Site.make({ script: () => {} });
  ({ provider } = site);
  gateway = site.gateway({ JOURNAL_FSYNC_MS: '0', ...withFault({ at: 'sync', do: 'hold', trace: true }) });
  key = await gateway.firstKey();
  url = await gateway.ready();
});
afterAll(() => site.remove());
beforeEach(() => {
  earlierLines = wholeTrace().length;
  earlierRequests = provider.requests.length;
});

const call = () => send(url, key);

const wholeTrace = () => [...gateway.process.stderr.matchAll(/^trace: (.*)$/gm)].map(([, text]) => text!);
const traced = () => wholeTrace().slice(earlierLines);
const count = (what: string) => traced().filter((text) => text === what).length;
/** A late one of the test before may be the one that is held. */
function isSyncHeld(): boolean {
  const of = (what: string) => wholeTrace().filter((text) => text === what).length;
  return of('sync held') > of('sync end');
}
const requests = () => provider.requests.length - earlierRequests;

/** Lets syncs go, one batch after the other, until this is so. */
async function releaseUntil(what: () => boolean): Promise<void> {
  await eventually(() => {
    if (isSyncHeld()) gateway.process.signal('SIGUSR2');
    return what();
  });
}

/** True when a whole sync lies between the n-th append of this kind and the n-th of these writes. */
function syncedBetween(append: string, wire: number): boolean {
  const trace = traced();
  const from = trace.indexOf(append);
  const to = trace.flatMap((text, i) => (text === 'wire' ? [i] : []))[wire]!;
  const begin = trace.indexOf('sync begin', from);
  return from !== -1 && begin !== -1 && trace.indexOf('sync end', begin) < to && begin < to;
}

describe.each([
  ['with Content-Length', (): Buffer[] => [answer('200 OK', [], 'whole')], 'whole'],
  [
    'in chunks',
    (): Buffer[] => [
      Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'),
      chunk('who'),
      chunk('le'),
      Buffer.from(LAST_CHUNK),
    ],
    'whole',
  ],
])('a response %s', (_, parts, body) => {
  it('shows nothing before its beginning is synced, and is not complete before its end is', async () => {
    provider.script = async (req) => {
      await req.body;
      for (const part of parts()) req.socket.write(part);
    };
    const client = await call();
    // The provider has been asked and has answered whole; the gateway has the beginning on record, not on the disk.
    await eventually(() => requests() === 1 && count('append B') === 1 && isSyncHeld());
    expect(client.socket.bytesRead).toBe(0);
    const whole = client.answer();
    let complete = false;
    void whole.then(() => (complete = true));
    await releaseUntil(() => complete);
    expect((await whole).body.toString()).toBe(body);
    expect(syncedBetween('append B', 0)).toBe(true);
    expect(syncedBetween('append E', count('wire') - 1)).toBe(true);
    client.destroy();
  });
});

it("shows the gateway's own response to a call it began only when that is synced", async () => {
  provider.script = ({ socket }) => void socket.end('nonsense\r\n\r\n');
  const client = await call();
  await eventually(() => count('append E') === 1 && isSyncHeld());
  expect(client.socket.bytesRead).toBe(0);
  await releaseUntil(() => client.socket.bytesRead > 0);
  expect((await client.answer()).status).toBe(502);
  expect(syncedBetween('append E', 0)).toBe(true);
  client.destroy();
});

it('shares one sync among many calls', async () => {
  const CALLS = 60;
  provider.script = async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], 'ok'));
  };
  const clients = await Promise.all(Array.from({ length: CALLS }, call));
  await eventually(() => count('append B') === CALLS && isSyncHeld());
  const answers = Promise.all(clients.map((client) => client.answer()));
  let done = false;
  void answers.then(() => (done = true));
  await releaseUntil(() => done);
  for (const { status } of await answers) expect(status).toBe(200);
  // Twice as many records had to be on the disk first, each before its own write.
  expect(count('append B') + count('append E')).toBe(2 * CALLS);
  expect(count('sync end')).toBeLessThan(CALLS);
  for (const client of clients) client.destroy();
});
