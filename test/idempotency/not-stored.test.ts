import pg from 'pg';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { answer, chunk, LAST_CHUNK } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';
import { CHAT, essence, once, open } from './once.js';
import { request } from '../support/raw-client.js';

let wire: Wire;
let auth: string;
beforeAll(async () => {
  wire = await Wire.start({ CLIENT_IDLE_TIMEOUT_MS: '5000' });
  auth = `Authorization: Bearer ${await wire.gateway.createKey({ endpoints: 'all', idempotency: 'replay' })}`;
});
afterAll(() => wire.stop());

const MIB = 1024 * 1024;
let names = 0;
let headers: string[];
let before: number;
beforeEach(() => {
  headers = [auth, `Idempotency-Key: not-kept-${++names}`];
  before = wire.provider.requests.length;
});
const calls = () => wire.provider.requests.length - before;

function respond(bytes: Buffer | string, end = false): void {
  wire.provider.script = async (req) => {
    await req.body.catch(() => {});
    req.socket.write(bytes);
    if (end) req.socket.destroy();
  };
}

it.each([401, 402, 403, 408, 409, 429, 500, 502, 503, 529])(
  'a repeat right after %d runs again, and finds the good answer the next time',
  async (status) => {
    respond(answer(`${status} X`, ['Content-Type: application/json'], '{}'));
    expect((await once(wire.gateway, headers)).status).toBe(status);
    respond(answer('200 OK', [], 'good'));
    expect((await once(wire.gateway, headers)).body.toString()).toBe('good');
    expect((await once(wire.gateway, headers)).header('idempotent-replayed')).toBe('true');
    expect(calls()).toBe(2);
  },
);

never.each([200, 201, 204, 302, 400, 404, 413, 422])('a retry after %d gets the same', async (status) => {
  respond(status === 204 ? 'HTTP/1.1 204 No Content\r\n\r\n' : answer(`${status} X`, [], 'x'));
  const first = await once(wire.gateway, headers);
  expect(essence(await once(wire.gateway, headers))).toEqual(essence(first));
  expect(calls()).toBe(1);
});

never.each([
  ['amid a length', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'],
  ['amid chunks', `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk('half').toString()}`],
])('a response cut %s is not kept', async (_, bytes) => {
  respond(bytes, true);
  const client = await open(wire.gateway, headers);
  await client.head();
  await client.closed;
  respond(answer('200 OK', [], 'whole'));
  expect((await once(wire.gateway, headers)).body.toString()).toBe('whole');
  expect(calls()).toBe(2);
});

it.each([
  ['an error', '500 No', false],
  ['an answer cut short', '200 OK', true],
])('%s ends only once a retry may run', async (_, status, cut) => {
  const goOn = deferred();
  wire.provider.script = async (req) => {
    await req.body;
    await goOn.promise;
    req.socket.write(`HTTP/1.1 ${status}\r\nContent-Length: 9\r\n\r\n${cut ? 'half' : 'an answer'}`);
    if (cut) req.socket.destroy();
  };
  const client = await open(wire.gateway, headers);
  await eventually(() => calls() === 1);
  const locker = new pg.Client({ connectionString: wire.gateway.database.url });
  locker.on('error', () => {});
  await locker.connect();
  await locker.query('BEGIN');
  await locker.query('SELECT 1 FROM idempotency_record WHERE answer IS NULL FOR UPDATE');
  let ended = false;
  const end = (cut ? client.head().then(() => client.closed) : client.answer()).then(() => (ended = true));
  goOn.resolve();
  await eventually(async () => {
    // Apart from the locker, whose transaction would see the same state each time.
    const waiting = await wire.gateway.database.query(
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%DELETE%'",
    );
    return waiting.length > 0;
  });
  expect(ended).toBe(false);
  await locker.query('ROLLBACK');
  await locker.end();
  await end;
  respond(answer('200 OK', [], 'again'));
  expect((await once(wire.gateway, headers)).body.toString()).toBe('again');
});

it('a provider that breaks off without a response, or cannot be reached, leaves nothing', async () => {
  respond('', true);
  wire.expectRejection(await once(wire.gateway, headers), 502, 'upstream_invalid_response');
  respond(answer('200 OK', [], 'whole'));
  expect((await once(wire.gateway, headers)).body.toString()).toBe('whole');
});

it('a response above 8 MiB is not kept, and says so where its length is announced', async () => {
  const large = Buffer.alloc(8 * MIB + 1, 'l');
  respond(answer('200 OK', [], large));
  for (let i = 1; i <= 2; i++) {
    const reply = await once(wire.gateway, headers);
    expect([reply.body.equals(large), reply.header('idempotency-stored'), calls()]).toEqual([
      true,
      'false',
      i,
    ]);
  }
});

it('a response above 8 MiB of no announced length is not kept', async () => {
  const piece = chunk(Buffer.alloc(MIB, 'l'));
  const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
  const pieces = [...Array<Buffer>(8).fill(piece), chunk('x'), Buffer.from(LAST_CHUNK)];
  respond(Buffer.concat([Buffer.from(head), ...pieces]));
  for (let i = 1; i <= 2; i++) {
    const reply = await once(wire.gateway, headers);
    expect([reply.body.length, reply.header('idempotency-stored'), calls()]).toEqual([
      8 * MIB + 1,
      undefined,
      i,
    ]);
  }
});

it('a response of just 8 MiB is kept', async () => {
  respond(answer('200 OK', [], Buffer.alloc(8 * MIB, 'l')));
  const first = await once(wire.gateway, headers);
  expect(first.header('idempotency-stored')).toBeUndefined();
  expect(essence(await once(wire.gateway, headers))).toEqual(essence(first));
  expect(calls()).toBe(1);
});

it('a response to a body that never arrived whole is not kept', async () => {
  wire.provider.script = (req) => {
    req.socket.write(answer('200 OK', [], 'early'));
  };
  const client = await open(wire.gateway, [...headers, 'Content-Length: 900000'], 'a');
  expect((await client.answer()).body.toString()).toBe('early');
  client.destroy();
  respond(answer('200 OK', [], 'late'));
  expect((await once(wire.gateway, headers, 'b')).body.toString()).toBe('late');
  expect(calls()).toBe(2);
});

it('a client that leaves amid its body takes the call with it, and may come again', async () => {
  wire.provider.script = () => {};
  const client = await open(wire.gateway, [...headers, 'Transfer-Encoding: chunked'], '1\r\na\r\n');
  await eventually(() => calls() === 1);
  client.destroy();
  await wire.provider.requests.at(-1)!.closed;
  respond(answer('200 OK', [], 'again'));
  const replies = await eventually(async () => {
    const reply = await once(wire.gateway, headers, 'b');
    return reply.status === 200 && reply;
  });
  expect(replies.body.toString()).toBe('again');
});

it('a call rejected before it was forwarded leaves nothing', async () => {
  const stalled = await open(wire.gateway, [...headers, 'Content-Length: 10'], 'a');
  wire.expectRejection(await stalled.answer(), 408, 'request_timeout');
  respond(answer('200 OK', [], 'fine'));
  expect((await once(wire.gateway, headers)).body.toString()).toBe('fine');
  expect(calls()).toBe(1);
});

never('calls that follow each other on one connection keep their own responses', async () => {
  wire.provider.script = async (req) => {
    const { bytes } = await req.body;
    req.socket.write(answer('200 OK', [], bytes));
  };
  const client = await open(wire.gateway, [...headers.slice(0, 1), 'Idempotency-Key: pipe-1'], 'one');
  client.send(request(CHAT, [auth, 'Idempotency-Key: pipe-2'], 'two'));
  client.send(request(CHAT, [auth, 'Idempotency-Key: pipe-1'], 'one'));
  const replies = [await client.answer(), await client.answer(), await client.answer()];
  client.destroy();
  expect(replies.map(({ body }) => body.toString())).toEqual(['one', 'two', 'one']);
  expect(calls()).toBe(2);
});
