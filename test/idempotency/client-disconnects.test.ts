import type { GatewayHttpAdapter } from '../../src/proxy/http/gateway-http.adapter.js';
import { deferred, type Deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { noticed } from '../support/raw-client.js';
import { answer, chunk, LAST_CHUNK } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';
import { once, open } from './once.js';

let wire: Wire;
let auth: string;
beforeAll(async () => {
  wire = await Wire.start({ SHUTDOWN_GRACE_MS: '500' });
  auth = `Authorization: Bearer ${await wire.gateway.createKey({ endpoints: 'all', idempotency: 'replay' })}`;
});
afterAll(() => wire.stop());

const MIB = 1024 * 1024;
const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
let names = 0;
let headers: string[];
let before: number;
beforeEach(() => {
  headers = [auth, `Idempotency-Key: leaves-${++names}`];
  before = wire.provider.requests.length;
});
const calls = () => wire.provider.requests.length - before;
const rowOf = (outcome: string) =>
  eventually(async () => {
    const rows = await wire.gateway.database.query<Record<string, unknown>>(
      'SELECT * FROM request_log WHERE idempotency_key = $1 AND outcome = $2',
      [`leaves-${names}`, outcome],
    );
    return rows[0];
  });

/** Answers with two chunks, the second when it is told to. @returns when the first is out, and what lets the second go */
function inTwoParts(first = 'data: {"usage":{"prompt_tokens":5,"completion_tokens":6}}\n\n'): Deferred {
  const goOn = deferred();
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(`${HEAD}${chunk(first).toString()}`);
    await goOn.promise;
    req.socket.write(`${chunk('data: [DONE]\n\n').toString()}${LAST_CHUNK}`);
  };
  return goOn;
}

never.each(['before the head', 'amid the response'])(
  'a client that leaves %s finds the whole response later',
  async (when) => {
    const goOn = deferred();
    const sse =
      'data: {"object":"chat.completion.chunk","usage":{"prompt_tokens":5,"completion_tokens":6}}\n\n';
    wire.provider.script = async (req) => {
      await req.body;
      if (when === 'before the head') await goOn.promise;
      req.socket.write(`${HEAD}${chunk(sse).toString()}`);
      await goOn.promise;
      req.socket.write(`${chunk('data: [DONE]\n\n').toString()}${LAST_CHUNK}`);
    };
    const client = await open(wire.gateway, headers);
    await eventually(() => calls() === 1);
    if (when === 'amid the response') await client.head();
    client.destroy();
    await noticed(wire.gateway);
    goOn.resolve();
    const repeat = await once(wire.gateway, headers);
    expect([repeat.body.toString(), repeat.header('idempotent-replayed')]).toEqual([
      `${sse}data: [DONE]\n\n`,
      'true',
    ]);
    expect(calls()).toBe(1);
    const row = await rowOf('client_aborted');
    expect([row.status, row.prompt_tokens, row.completion_tokens]).toEqual([
      when === 'amid the response' ? 200 : null,
      5,
      6,
    ]);
    await rowOf('replayed');
  },
);

never('a client that leaves in the moment in which the response ends finds it later', async () => {
  for (let round = 0; round < 20; round++) {
    headers = [auth, `Idempotency-Key: leaves-${++names}`];
    before = wire.provider.requests.length;
    const client = await open(wire.gateway, headers);
    const seen = deferred();
    wire.provider.script = async (req) => {
      await req.body;
      seen.resolve();
      await Promise.resolve();
      // The gateway sees both in one turn of its event loop.
      if (round % 2 === 0) client.reset();
      req.socket.write(answer('200 OK', [], 'all of it'));
      if (round % 2 === 1) client.reset();
    };
    await seen.promise;
    const repeat = await once(wire.gateway, headers);
    expect([repeat.body.toString(), repeat.header('idempotent-replayed'), calls()]).toEqual([
      'all of it',
      'true',
      1,
    ]);
  }
});

it('a client that leaves while an empty response waits for the disk finds it later', async () => {
  const strict = await Wire.start({ JOURNAL_FSYNC_MS: '0' });
  const key = await strict.gateway.createKey({ endpoints: 'all', idempotency: 'replay' });
  for (let round = 0; round < 5; round++) {
    const lines = [`Authorization: Bearer ${key}`, `Idempotency-Key: empty-${round}`];
    const client = await open(strict.gateway, lines);
    const written = deferred();
    strict.provider.script = async (req) => {
      await req.body;
      req.socket.write(answer('201 Created', []));
      client.reset();
      written.resolve();
    };
    await written.promise;
    const repeat = await once(strict.gateway, lines);
    expect([repeat.status, repeat.header('idempotent-replayed')]).toEqual([201, 'true']);
  }
  expect(strict.provider.requests).toHaveLength(5);
  await strict.stop();
});

it('a client that does not read holds up neither the provider nor the response that is kept', async () => {
  const large = Buffer.alloc(6 * MIB, 'l');
  const written = deferred();
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], large), () => written.resolve());
  };
  const client = await open(wire.gateway, headers);
  client.socket.pause();
  await written.promise;
  const repeat = await once(wire.gateway, headers);
  expect([repeat.body.equals(large), calls()]).toEqual([true, 1]);
  client.destroy();
});

it('a client that stalls for too long is disconnected, and the call continues', async () => {
  const own = await Wire.start({ CLIENT_IDLE_TIMEOUT_MS: '3000' });
  const key = await own.gateway.createKey({ endpoints: 'all', idempotency: 'replay' });
  const lines = [`Authorization: Bearer ${key}`, 'Idempotency-Key: stalls'];
  const goOn = deferred();
  own.provider.script = async (req) => {
    await req.body;
    req.socket.write(`${HEAD}${chunk(Buffer.alloc(6 * MIB, 'l')).toString('latin1')}`);
    await goOn.promise;
    req.socket.write(LAST_CHUNK);
  };
  const client = await open(own.gateway, lines);
  await client.head();
  client.socket.pause();
  const adapter = own.gateway.gateway.app.getHttpAdapter() as GatewayHttpAdapter;
  await eventually(() => adapter.openRequests === 0);
  goOn.resolve();
  expect((await once(own.gateway, lines)).body.length).toBe(6 * MIB);
  expect(own.provider.requests).toHaveLength(1);
  client.destroy();
  await own.stop();
});

it('past 8 MiB there is nothing to keep: the call of a client that left ends', async () => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(HEAD);
    const piece = chunk(Buffer.alloc(MIB, 'l'));
    while (!req.socket.destroyed) {
      const drained = new Promise((resolve) => req.socket.once('drain', resolve));
      if (!req.socket.write(piece)) await Promise.race([drained, req.closed]);
    }
  };
  const client = await open(wire.gateway, headers);
  await client.head();
  client.destroy();
  await wire.provider.requests.at(-1)!.closed;
  const row = await rowOf('client_aborted');
  expect(Number(row.response_bytes)).toBeGreaterThan(8 * MIB);
});

it('an error that is not kept ends the call of a client that left', async () => {
  const goOn = deferred();
  wire.provider.script = async (req) => {
    await req.body;
    await goOn.promise;
    req.socket.write('HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nhalf');
  };
  const client = await open(wire.gateway, headers);
  await eventually(() => calls() === 1);
  client.destroy();
  await noticed(wire.gateway);
  goOn.resolve();
  await wire.provider.requests.at(-1)!.closed;
  await rowOf('client_aborted');
  const left = () => wire.gateway.database.query('SELECT 1 FROM idempotency_record WHERE answer IS NULL');
  await eventually(async () => (await left()).length === 0);
});

it('a provider that breaks off after the client left leaves its own verdict, and a retry runs', async () => {
  const goOn = deferred();
  wire.provider.script = async (req) => {
    await req.body;
    await goOn.promise;
    req.socket.destroy();
  };
  const client = await open(wire.gateway, headers);
  await eventually(() => calls() === 1);
  client.destroy();
  await noticed(wire.gateway);
  goOn.resolve();
  const row = await rowOf('upstream_error');
  expect(row.status).toBeNull();
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], 'again'));
  };
  expect((await once(wire.gateway, headers)).body.toString()).toBe('again');
});

it('a provider that resets its connection after the end of the response leaves no call behind', async () => {
  const strict = await Wire.start({ JOURNAL_FSYNC_MS: '0' });
  const key = await strict.gateway.createKey({ endpoints: 'all', idempotency: 'replay' });
  const goOn = deferred();
  strict.provider.script = async (req) => {
    await req.body;
    await goOn.promise;
    req.socket.write(answer('200 OK', [], 'whole'), () => req.socket.resetAndDestroy());
  };
  const lines = [`Authorization: Bearer ${key}`, headers[1]!];
  for (let i = 0; i < 20; i++) {
    const client = await open(strict.gateway, [lines[0]!, `${lines[1]}-${i}`]);
    await eventually(() => strict.provider.requests.length === i + 1);
    client.destroy();
  }
  await noticed(strict.gateway);
  goOn.resolve();
  await eventually(async () => (await strict.gateway.rowCount()) === 20);
  await strict.stop();
});

it('a call in forward mode is aborted as ever', async () => {
  const forward = `Authorization: Bearer ${await wire.gateway.createKey({ endpoints: 'all' })}`;
  inTwoParts();
  const client = await open(wire.gateway, [forward, headers[1]!]);
  await client.head();
  client.destroy();
  await wire.provider.requests.at(-1)!.closed;
});

it('a stop waits for a call whose client left, and its repeat finds the response after the next start', async () => {
  const own = await Wire.start({ SHUTDOWN_GRACE_MS: '5000' });
  const key = await own.gateway.createKey({ endpoints: 'all', idempotency: 'replay' });
  const goOn = deferred();
  own.provider.script = async (req) => {
    await req.body;
    await goOn.promise;
    req.socket.write(answer('200 OK', [], 'late'));
  };
  const lines = [`Authorization: Bearer ${key}`, 'Idempotency-Key: stop'];
  const client = await open(own.gateway, lines);
  await eventually(() => own.provider.requests.length === 1);
  client.destroy();
  await noticed(own.gateway);
  const adapter = own.gateway.gateway.app.getHttpAdapter() as GatewayHttpAdapter;
  const stopping = own.gateway.gateway.stop();
  await eventually(() => adapter.draining);
  goOn.resolve();
  await stopping;
  const rows = await own.gateway.database.query(
    'SELECT outcome, answer IS NOT NULL AS kept FROM request_log, idempotency_record',
  );
  expect(rows).toEqual([{ outcome: 'client_aborted', kept: true }]);
  await own.stop();
});

it('a stop whose grace ends abandons the call: retries get an unknown outcome at once', async () => {
  const own = await Wire.start({ SHUTDOWN_GRACE_MS: '100' }, () => {});
  const key = await own.gateway.createKey({ endpoints: 'all', idempotency: 'replay' });
  const lines = [`Authorization: Bearer ${key}`];
  for (const leaves of [true, false]) {
    const client = await open(own.gateway, [lines[0]!, `Idempotency-Key: grace-${leaves}`]);
    await eventually(() => own.provider.requests.length === (leaves ? 1 : 2));
    if (leaves) client.destroy();
  }
  // The provider never had the whole of this one: a retry may run it.
  await open(
    own.gateway,
    [lines[0]!, 'Idempotency-Key: grace-half', 'Transfer-Encoding: chunked'],
    '1\r\na\r\n',
  );
  await eventually(() => own.provider.requests.length === 3);
  await noticed(own.gateway);
  await own.gateway.gateway.stop();
  const records = await own.gateway.database.query(
    'SELECT answer, lease_until <= now() AS lapsed FROM idempotency_record',
  );
  expect(records).toEqual([1, 2].map(() => ({ answer: null, lapsed: true })));
  const rows = await own.gateway.database.query('SELECT outcome FROM request_log');
  expect(rows).toEqual([1, 2, 3].map(() => ({ outcome: 'interrupted' })));
  await own.stop();
});

it('a stop that cuts a call off before it was forwarded lets a retry run it', async () => {
  const own = await Wire.start({ SHUTDOWN_GRACE_MS: '100' });
  const key = await own.gateway.createKey({ endpoints: 'all', idempotency: 'replay' });
  const lines = [`Authorization: Bearer ${key}`, 'Idempotency-Key: half', 'Content-Length: 10'];
  await open(own.gateway, lines, 'half');
  const records = () => own.gateway.database.query('SELECT 1 FROM idempotency_record');
  await eventually(async () => (await records()).length === 1);
  await own.gateway.gateway.stop();
  expect(await records()).toEqual([]);
  await own.stop();
});
