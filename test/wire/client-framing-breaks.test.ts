import { generateKey } from '../../src/keys/key-secret.js';
import { never } from '../support/never.js';
import { type RawClient, request } from '../support/raw-client.js';
import { eventually } from '../support/eventually.js';
import type { LogRowView } from '../support/gateway.js';
import type { ReceivedRequest } from '../support/raw-provider.js';
import { responsesOn, echo, Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());
beforeEach(() => wire.gateway.database.query('TRUNCATE request_log'));

it.each([
  ['a chunk size that is none', 'zz\r\n'],
  ['a chunk that is longer than its size', '1\r\nab\r\n'],
  ['a negative chunk size', '-1\r\na\r\n'],
])(
  '%s in an upload that is being forwarded ends the call on both sides as an error of the client',
  async (_, bytes) => {
    const arrived = new Promise<ReceivedRequest>((seen) => {
      wire.provider.script = async (req) => {
        seen(req);
        await req.closed;
      };
    });
    const client = await wire.connect();
    client.send(
      request('POST /v1/chat/completions', [wire.auth, 'Transfer-Encoding: chunked'], '1\r\na\r\n'),
    );
    const req = await arrived;
    client.send(bytes);
    await Promise.all([req.closed, client.closed]);
    const row = await eventually(
      async () =>
        (
          await wire.gateway.database.query<LogRowView>(
            "SELECT * FROM request_log WHERE outcome <> 'completed'",
          )
        )[0],
    );
    expect(row).toMatchObject({ outcome: 'client_error', error_code: 'invalid_request', status: null });
    await wire.expectSound(1);
  },
);

describe('in a request of which nothing was forwarded', () => {
  const CHUNKED = 'Transfer-Encoding: chunked';
  const LINE = 'POST /v1/chat/completions';

  beforeEach(() => {
    wire.provider.script = echo;
  });

  async function expectRejected(client: RawClient, connections: number) {
    const reply = await client.answer();
    wire.expectRejection(reply, 400, 'invalid_request');
    expect(reply.header('connection')).toBe('close');
    client.socket.end();
    await client.closed;
    expect(wire.provider.connections).toBe(connections);
    await expectNoRow();
  }

  /** Rows are written in the order of their calls' ends. */
  async function expectNoRow() {
    const sound = await wire.call(LINE, [], 'sound');
    await wire.gateway.row(sound.header('x-gateway-request-id')!);
    const others = "SELECT * FROM request_log WHERE outcome <> 'completed'";
    expect(await wire.gateway.database.query(others)).toEqual([]);
    await wire.expectSound(1);
  }

  it.each([
    ['a chunk size that is none', 'zz\r\n'],
    ['a negative chunk size', '-1\r\na\r\n'],
    ['a chunk that is longer than its size', '1\r\nab\r\n'],
    ['a good chunk and a broken one at once', '1\r\na\r\nzz\r\n'],
  ])('%s gets 400, no row and no connection', async (_, bytes) => {
    const { connections } = wire.provider;
    const client = await wire.connect();
    client.send(request(LINE, [wire.auth, CHUNKED], bytes));
    await expectRejected(client, connections);
  });

  it('a chunk size that is none gets 400 also some time after its head', async () => {
    const { connections } = wire.provider;
    const client = await wire.connect();
    client.send(request(LINE, [wire.auth, CHUNKED, 'Expect: 100-continue']));
    expect(await client.reader.head()).toBe('HTTP/1.1 100 Continue');
    client.send('zz\r\n');
    await expectRejected(client, connections);
  });

  it.each([
    ['its key is looked up', {}],
    ['its idempotency is claimed', { idempotency: 'replay' }],
  ])('gets 400 when it breaks while %s', async (_, properties) => {
    const { connections } = wire.provider;
    const key = await wire.gateway.createKey({ endpoints: 'all', ...properties });
    const headers = [`Authorization: Bearer ${key}`, 'Idempotency-Key: broken', CHUNKED];
    const client = await wire.connect();
    client.send(request(LINE, headers, 'zz\r\n'));
    await expectRejected(client, connections);
  });

  never('gets 400 as a repeat, and the repeat that is well-formed its response', async () => {
    const key = await wire.gateway.createKey({ endpoints: 'all', idempotency: 'replay' });
    const headers = [`Authorization: Bearer ${key}`, 'Idempotency-Key: repeat', CHUNKED];
    const replies: unknown[] = [];
    let last = '';
    for (const body of ['2\r\nhi\r\n0\r\n\r\n', '2\r\nhi\r\nzz\r\n', '2\r\nhi\r\n0\r\n\r\n']) {
      const client = await wire.connect();
      client.send(request(LINE, headers, body));
      const reply = await client.answer();
      replies.push([reply.status, reply.header('idempotent-replayed')]);
      last = reply.header('x-gateway-request-id')!;
      client.destroy();
    }
    expect(replies).toEqual([
      [200, undefined],
      [400, undefined],
      [200, 'true'],
    ]);
    // Later, it would be among the rows of the next test.
    await wire.gateway.row(last);
    await wire.expectSound(1);
  });

  it('gets the rejection of its key where that is bad, and its connection is closed', async () => {
    const client = await wire.connect();
    client.send(request(LINE, [`Authorization: Bearer ${generateKey()}`, CHUNKED], 'zz\r\n'));
    const reply = await client.answer();
    wire.expectRejection(reply, 401, 'invalid_api_key');
    expect(reply.header('connection')).toBe('close');
    client.socket.end();
    await client.closed;
    await wire.expectSound(0);
  });

  never('gets 400 after the response to the call before it on its connection', async () => {
    const client = await wire.connect();
    client.send(
      Buffer.concat([request(LINE, [wire.auth], 'first'), request(LINE, [wire.auth, CHUNKED], 'zz\r\n')]),
    );
    const first = await client.answer();
    expect([first.status, first.body.toString()]).toEqual([200, 'first']);
    wire.expectRejection(await client.answer(), 400, 'invalid_request');
    client.socket.end();
    await client.closed;
    await wire.expectSound(1);
  });

  it.each([
    ['a call without a body', () => request('GET /v1/models', [wire.auth]), 200, 1],
    ['a health check', () => request('GET /health/live', []), 200, 0],
    ['a rejected call', () => request('GET /v1/models', []), 401, 0],
    ['a request that is rejected at once', () => request('GET /v1/../models', [wire.auth]), 400, 0],
    [
      'two calls',
      () => Buffer.concat([request('GET /v1/models', [wire.auth]), request(LINE, [wire.auth], 'second')]),
      200,
      2,
    ],
  ])('is answered in its turn behind %s', async (_, before, status, forwarded) => {
    for (const [auth, code, error] of [
      [wire.auth, 400, 'invalid_request'],
      [`Authorization: Bearer ${generateKey()}`, 401, 'invalid_api_key'],
    ] as const) {
      const client = await wire.connect();
      client.send(Buffer.concat([before(), request(LINE, [auth, CHUNKED], 'zz\r\n')]));
      const replies = await responsesOn(client, 4);
      const last = replies.pop();
      expect(replies.map((reply) => reply.status)).toEqual(replies.map(() => status));
      expect(replies.length).toBeGreaterThan(0);
      wire.expectRejection(last, code, error);
      expect(last!.header('connection')).toBe('close');
      await client.closed;
      await wire.expectSound(forwarded);
    }
  });

  it.each([
    ['alone', () => Buffer.alloc(0), 0],
    ['behind a health check', () => request('GET /health/live', []), 1],
  ])('gets the rejection of its target, %s', async (_, before, count) => {
    const client = await wire.connect();
    client.send(Buffer.concat([before(), request('POST /v1/../models', [wire.auth, CHUNKED], 'zz\r\n')]));
    const replies = await responsesOn(client, count + 2);
    expect(replies).toHaveLength(count + 1);
    wire.expectRejection(replies[count], 400, 'invalid_path');
    await client.closed;
    await wire.expectSound(0);
  });

  it.each([
    ['of chunks', CHUNKED],
    ['with a length', 'Content-Length: 900000'],
  ])('a client that leaves before the first byte of a body %s leaves no row', async (_, framing) => {
    const { connections } = wire.provider;
    const adapter = (wire.gateway.gateway.app as unknown as { httpAdapter: { openRequests: number } })
      .httpAdapter;
    const client = await wire.connect();
    client.send(request(LINE, [wire.auth, framing]));
    await eventually(() => adapter.openRequests === 1);
    client.reset();
    await eventually(() => adapter.openRequests === 0);
    expect(wire.provider.connections).toBe(connections);
    await expectNoRow();
  });
});
