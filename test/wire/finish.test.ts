import { randomBytes } from 'node:crypto';
import { FastPath } from '../../src/proxy/fast-path.js';
import { deferred, type Deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { type LogRowView, startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { noticed, RawClient, request } from '../support/raw-client.js';
import { answer, chunk, LAST_CHUNK, RawProvider, type Script, STREAM_HEAD } from '../support/raw-provider.js';

const CALL = 'POST /v1/chat/completions';
const EVENTS = 50;
const event = (n: number) => `data: {"object":"chat.completion.chunk","n":${n}}\n\n`;
const USAGE =
  'data: {"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":50}}\n\n';

let provider: RawProvider;
let gateway: TestGateway;
/** A key that says `finish`. */
let finishing: string;

/** Each call is found by its Idempotency-Key, which is forwarded. */
let calls = 0;
const rowsOf = (call: number) =>
  gateway.database.query<LogRowView>('SELECT * FROM request_log WHERE idempotency_key = $1', [
    `call-${call}`,
  ]);
/** The row of the last call. */
const lastRow = () => eventually(async () => (await rowsOf(calls))[0]);

async function open(key: string, line = CALL, id = `call-${++calls}`): Promise<RawClient> {
  const client = await RawClient.connect(gateway.port);
  const headers = [`Authorization: Bearer ${key}`, `Idempotency-Key: ${id}`];
  client.send(request(line, headers, '{"model":"m","stream":true}'));
  return client;
}

/** With Nest's router, a global interceptor or another version of Nest keeps the fast path closed. */
describe.each([
  ['on the fast path', FastPath.nestVersion, {}],
  ['by the router of Nest', '0.0.0', {}],
  ['if responses wait for the sync of the journal', FastPath.nestVersion, { JOURNAL_FSYNC_MS: '0' }],
] as const)('%s', (_, nestVersion, settings) => {
  beforeAll(async () => {
    const { nestVersion: own } = FastPath;
    FastPath.nestVersion = nestVersion;
    provider = await RawProvider.start(() => {});
    gateway = await startTestGateway({ PROVIDER_URL: provider.url, ...settings });
    FastPath.nestVersion = own;
    finishing = await gateway.createKey({ on_disconnect: 'finish' });
  });
  afterAll(async () => {
    await gateway.stop();
    await provider.stop();
  });

  /** Sends three events, and the rest when it is told to. @returns what lets it go on, and whether it was cut */
  function inTwoParts(): { goOn: Deferred; sent: Promise<void>; cut: () => boolean } {
    const goOn = deferred();
    const sent = deferred();
    let isCut = false;
    let isOn = false;
    provider.script = async ({ body, socket, closed }) => {
      await body;
      socket.write(STREAM_HEAD);
      for (let n = 0; n < 3; n++) socket.write(chunk(event(n)));
      void closed.then(() => (isCut = !isOn));
      await goOn.promise;
      isOn = true;
      for (let n = 3; n < EVENTS; n++) socket.write(chunk(event(n)));
      await new Promise<void>((written) => {
        socket.write(`${chunk(USAGE).toString()}${chunk('data: [DONE]\n\n').toString()}${LAST_CHUNK}`, () =>
          written(),
        );
      });
      sent.resolve();
    };
    return { goOn, sent: sent.promise, cut: () => isCut };
  }

  const READ = 3 * event(0).length;
  async function readThree(client: RawClient): Promise<void> {
    await client.head();
    await client.reader.take(3 * chunk(event(0)).length);
  }

  never(
    'finish: the usage at the end of a stream is in the row of a client that left after three events',
    async () => {
      const { goOn, sent, cut } = inTwoParts();
      const client = await open(finishing);
      await readThree(client);
      client.destroy();
      await noticed(gateway);
      goOn.resolve();
      await sent;
      expect(await lastRow()).toMatchObject({
        outcome: 'client_aborted',
        error_code: null,
        status: 200,
        prompt_tokens: 7,
        completion_tokens: 50,
        // What the client was sent, not what the provider sent.
        response_bytes: String(READ),
      });
      expect(cut()).toBe(false);
    },
  );

  it('cancel: the provider sees the abort, and the usage is unknown', async () => {
    const { cut } = inTwoParts();
    const client = await open(gateway.key);
    await readThree(client);
    client.destroy();
    await provider.requests.at(-1)!.closed;
    await eventually(cut);
    expect(await lastRow()).toMatchObject({
      outcome: 'client_aborted',
      error_code: null,
      completion_tokens: null,
    });
  });

  never('finish: a client that leaves before the head of a JSON response', async () => {
    const goOn = deferred();
    provider.script = async ({ body, socket }) => {
      await body;
      await goOn.promise;
      const usage = { usage: { prompt_tokens: 3, completion_tokens: 4 } };
      socket.write(answer('200 OK', ['Content-Type: application/json'], JSON.stringify(usage)));
    };
    const before = provider.requests.length;
    const client = await open(finishing);
    await eventually(() => provider.requests.length > before);
    await provider.requests.at(-1)!.body;
    client.destroy();
    await noticed(gateway);
    goOn.resolve();
    expect(await lastRow()).toMatchObject({
      outcome: 'client_aborted',
      status: null,
      response_bytes: '0',
      prompt_tokens: 3,
      completion_tokens: 4,
    });
  });

  it('finish: the connection to the provider carries the next call', async () => {
    const goOn = deferred();
    const alone = await RawProvider.start(async ({ body, socket }) => {
      await body;
      await goOn.promise;
      socket.write(answer('200 OK', ['Keep-Alive: timeout=600'], '{}'));
    });
    await gateway.admin('POST', '/providers', { name: 'alone', url: alone.url, secret: null });
    const client = await open(finishing, 'POST /p/alone/v1/chat/completions');
    await eventually(() => alone.requests.length === 1);
    client.destroy();
    await noticed(gateway);
    goOn.resolve();
    expect(await lastRow()).toMatchObject({ outcome: 'client_aborted', error_code: null });
    const next = await open(finishing, 'POST /p/alone/v1/chat/completions');
    expect((await next.answer()).status).toBe(200);
    next.destroy();
    expect(alone.connections).toBe(1);
    await gateway.admin('DELETE', '/providers/alone');
  });

  it('a client that stops reading holds the provider back; once it has left, the provider is read to the end', async () => {
    const block = randomBytes(1_000_000);
    const BLOCKS = 40;
    let poured = 0;
    const done = deferred();
    provider.script = async ({ body, socket, closed }) => {
      await body;
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${BLOCKS * block.length}\r\n\r\n`);
      for (; poured < BLOCKS; poured++) {
        const drained = new Promise((resolve) => socket.once('drain', resolve));
        if (!socket.write(block)) await Promise.race([drained, closed]);
        if (socket.destroyed) return;
      }
      done.resolve();
    };
    const client = await open(finishing);
    await client.head();
    client.socket.pause();
    // The buffers of the two connections are full: two looks, with all that came between, find the same.
    let last = -1;
    await eventually(async () => {
      await noticed(gateway);
      const isHeld = poured > 0 && poured === last;
      last = poured;
      return isHeld;
    });
    expect(poured).toBeLessThan(BLOCKS);
    client.destroy();
    await done.promise;
    const row = await lastRow();
    expect(row).toMatchObject({ outcome: 'client_aborted', error_code: null });
    expect(Number(row.response_bytes)).toBeLessThan(BLOCKS * block.length);
  });

  it('a call whose request was not sent whole is cancelled', async () => {
    const before = provider.requests.length;
    provider.script = () => {};
    const client = await RawClient.connect(gateway.port);
    const headers = [`Authorization: Bearer ${finishing}`, `Idempotency-Key: call-${++calls}`];
    headers.push('Content-Length: 500000');
    client.send(request(CALL, headers, 'x'.repeat(300_000)));
    await eventually(() => provider.requests.length > before);
    client.destroy();
    await provider.requests.at(-1)!.closed;
    expect(await lastRow()).toMatchObject({ outcome: 'client_aborted', error_code: null });
  });

  it('a provider that breaks off after the client left: the outcome stays, the error code says why', async () => {
    const goOn = deferred();
    provider.script = async ({ body, socket }) => {
      await body;
      socket.write(STREAM_HEAD + chunk(event(0)).toString());
      await goOn.promise;
      socket.destroy();
    };
    const client = await open(finishing);
    await client.head();
    client.destroy();
    await noticed(gateway);
    goOn.resolve();
    expect(await lastRow()).toMatchObject({
      outcome: 'client_aborted',
      error_code: 'upstream_invalid_response',
      completion_tokens: null,
    });
  });

  it('keeps the slot of a limited key until the response has been read to its end', async () => {
    const limited = await gateway.createKey({
      on_disconnect: 'finish',
      limits: { concurrent_requests: 1 },
    });
    const { goOn } = inTwoParts();
    const client = await open(limited);
    await readThree(client);
    client.destroy();
    await noticed(gateway);
    const status = async () => {
      const next = await open(limited);
      const head = await next.head();
      next.destroy();
      return head.status;
    };
    expect(await status()).toBe(429);
    goOn.resolve();
    await eventually(async () => (await status()) === 200);
  });

  it('stores the response in the cache of a key that has one', async () => {
    const cached = await gateway.createKey({ on_disconnect: 'finish', cache: { ttl_seconds: 600 } });
    const { goOn, sent } = inTwoParts();
    // The header is part of what identifies a response.
    const client = await open(cached, CALL, 'same');
    await readThree(client);
    client.destroy();
    await noticed(gateway);
    goOn.resolve();
    await sent;
    const hit = await eventually(async () => {
      const again = await open(cached, CALL, 'same');
      const reply = await again.answer();
      again.destroy();
      return reply.header('x-gateway-cache') === 'hit' && reply;
    });
    expect(hit.body.toString()).toContain('"n":49');
  });

  it('goes on with an idempotent call whose response became too large to be stored', async () => {
    const key = await gateway.createKey({ on_disconnect: 'finish', idempotency: 'replay' });
    const MIB = 1024 * 1024;
    provider.script = async ({ body, socket }) => {
      await body;
      socket.write(STREAM_HEAD);
      for (let n = 0; n < 10; n++) socket.write(chunk(`: ${'x'.repeat(MIB)}\n\n`));
      socket.write(`${chunk(USAGE).toString()}${LAST_CHUNK}`);
    };
    const client = await open(key);
    await client.head();
    client.destroy();
    expect(await lastRow()).toMatchObject({ outcome: 'client_aborted', completion_tokens: 50 });
  });

  it('the rule of the key holds, otherwise that of the provider', async () => {
    const settings = { url: provider.url, secret: null, on_disconnect: 'finish' };
    await gateway.admin('POST', '/providers', { name: 'billing', ...settings });
    const [silent, cancelling] = await Promise.all([
      gateway.createKey({}),
      gateway.createKey({ on_disconnect: 'cancel' }),
    ]);
    for (const [key, tokens] of [
      [silent, 50],
      [cancelling, null],
    ] as const) {
      const { goOn } = inTwoParts();
      const client = await open(key, 'POST /p/billing/v1/chat/completions');
      await readThree(client);
      client.destroy();
      await noticed(gateway);
      goOn.resolve();
      expect(await lastRow()).toMatchObject({ outcome: 'client_aborted', completion_tokens: tokens });
    }
  });
});

describe('routes', () => {
  let second: RawProvider;
  beforeAll(async () => {
    [provider, second] = await Promise.all([RawProvider.start(() => {}), RawProvider.start(() => {})]);
    gateway = await startTestGateway({ PROVIDER_URL: provider.url });
    const settings = { url: second.url, secret: null };
    await gateway.admin('POST', '/providers', { name: 'second', ...settings });
    const targets = [{ provider: 'default' }, { provider: 'second' }];
    await gateway.admin('POST', '/routes', {
      name: 'both',
      targets,
      retry_on: ['connect', 'refused', 'failed'],
    });
    finishing = await gateway.createKey({ on_disconnect: 'finish' });
  });
  afterAll(async () => {
    await gateway.stop();
    await Promise.all([provider.stop(), second.stop()]);
  });

  /** The client leaves once the first target has its request, which then responds. @returns the rows */
  async function leaveThen(respond: Script): Promise<LogRowView[]> {
    const goOn = deferred();
    provider.script = async (req) => {
      await req.body;
      await goOn.promise;
      await respond(req);
    };
    const before = provider.requests.length;
    const client = await open(finishing, 'POST /p/both/v1/chat/completions');
    await eventually(() => provider.requests.length > before);
    await provider.requests.at(-1)!.body;
    client.destroy();
    await noticed(gateway);
    goOn.resolve();
    return eventually(async () => {
      const rows = await rowsOf(calls);
      return rows.length > 0 && rows;
    });
  }

  it('reads the response of the target that has the call', async () => {
    const rows = await leaveThen(({ socket }) => {
      const usage = { usage: { prompt_tokens: 3, completion_tokens: 4 } };
      socket.write(answer('200 OK', ['Content-Type: application/json'], JSON.stringify(usage)));
    });
    expect(rows).toMatchObject([{ outcome: 'client_aborted', provider: 'default', completion_tokens: 4 }]);
  });

  never('sends the call to no other target for a client that has left', async () => {
    const rows = await leaveThen(({ socket }) => void socket.write(answer('503 Busy', [], '{}')));
    expect(rows).toMatchObject([{ outcome: 'client_aborted', provider: 'default', error_code: null }]);
    const broken = await leaveThen(({ socket }) => void socket.destroy());
    expect(broken).toMatchObject([{ outcome: 'client_aborted', error_code: 'upstream_invalid_response' }]);
    expect(second.requests).toHaveLength(0);
  });
});
