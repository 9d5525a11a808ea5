import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

describe('small', () => {
  let wire: Wire;

  beforeAll(async () => {
    wire = await Wire.start({ MAX_BODY_BYTES: '1000' });
  });
  afterAll(() => wire.stop());

  const inner = () => request('GET /v1/models?smuggled', [wire.auth]).toString('latin1');

  /** Rejections that leave the framing of the connection intact; KEY is a good one. */
  const REFUSED: [status: number, code: string, line: string, headers: string[]][] = [
    [400, 'invalid_path', 'POST /v1/../admin', ['Authorization: Bearer KEY']],
    [400, 'credential_in_query', 'POST /v1/files?access_token=x', ['Authorization: Bearer KEY']],
    [401, 'invalid_api_key', 'POST /v1/chat/completions', []],
    [403, 'endpoint_not_allowed', 'POST /v1/files', ['Authorization: Bearer KEY']],
    [404, 'provider_not_found', 'POST /p/x/v1/chat/completions', ['Authorization: Bearer KEY']],
    [404, 'not_found', 'POST /elsewhere', ['Authorization: Bearer KEY']],
    [405, 'method_not_allowed', 'TRACE /v1/models', ['Authorization: Bearer KEY']],
  ];

  never.each(REFUSED)(
    'a request inside the body of a %i %s is never taken for one',
    async (status, code, line, headers) => {
      // An inference key, so that 403 is among them; 404 for a provider needs `all`.
      const key = code === 'provider_not_found' ? wire.auth.slice(22) : wire.gateway.key;
      const sent = headers.map((header) => header.replace('KEY', key));
      const body = inner();
      for (const framing of ['length', 'chunked', 'late']) {
        const client = await wire.connect();
        if (framing === 'length') client.send(request(line, sent, body));
        else if (framing === 'chunked') {
          const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
          client.send(request(line, [...sent, 'Transfer-Encoding: chunked'], chunk));
        } else client.send(request(line, [...sent, `Content-Length: ${body.length}`]));
        wire.expectRejection(await client.answer(), status, code);
        if (framing === 'late') client.send(body);
        // The connection is in step: the next thing on it is the next request.
        client.send(request('POST /v1/chat/completions?next', [`Authorization: Bearer ${key}`], 'next'));
        const next = await client.answer();
        expect([next.status, next.header('x-target')]).toEqual([200, '/v1/chat/completions?next']);
        expect(client.reader.rest).toHaveLength(0);
        client.destroy();
        await wire.expectSound(1);
      }
    },
  );

  never('a request inside a body that is too large is never taken for one', async () => {
    const client = await wire.connect();
    client.send(request('POST /v1/chat/completions', [wire.auth, 'Content-Length: 5000']));
    wire.expectRejection(await client.answer(), 413, 'request_too_large');
    client.send(inner());
    client.send('x'.repeat(5_000 - inner().length));
    client.send(request('POST /v1/chat/completions?next', [wire.auth], 'next'));
    expect((await client.answer()).header('x-target')).toBe('/v1/chat/completions?next');
    expect(client.reader.rest).toHaveLength(0);
    client.destroy();
    await wire.expectSound(1);
  });
});

describe('large', () => {
  let wire: Wire;
  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterAll(() => wire.stop());

  const CALL = 'POST /v1/chat/completions';
  const MEGABYTE = Buffer.alloc(1_000_000, 'GET /v1/smuggled HTTP/1.1\r\nHost: a\r\n\r\n');
  const JUNK = 'Authorization: Bearer junk';

  /** Sends megabytes until all are out or the gateway closes; resolves once the socket has taken them. */
  async function pour(client: RawClient, count: number): Promise<void> {
    let open = true;
    void client.closed.then(() => (open = false));
    for (let i = 0; i < count && open; i++) {
      if (!client.socket.write(MEGABYTE)) {
        await Promise.race([new Promise((drained) => client.socket.once('drain', drained)), client.closed]);
      }
    }
  }

  // RFC 9112 9.6: closing while the client still sends would reset the connection, and take the answer with it.
  describe.each([
    ['and keeps its connection', '1.1', [], false],
    ['and says it will close', '1.1', ['Connection: close'], true],
    ['over HTTP/1.0', '1.0', [], true],
  ])('a client that sends 100 MB under a junk key %s', (_, version, headers, closes) => {
    it.each([
      ['with a length', 'Content-Length: 100000000'],
      ['in chunks', 'Transfer-Encoding: chunked'],
    ])('%s can read the 401', async (_framing, framing) => {
      const chunked = framing.startsWith('Transfer');
      // HTTP/1.0 has no chunks, and that is another rejection.
      if (chunked && version === '1.0') return;
      const client = await wire.connect();
      const head = request(CALL, [JUNK, ...headers, framing]).toString('latin1');
      client.send(head.replace('HTTP/1.1', `HTTP/${version}`));
      if (chunked) client.send(`${(100_000_000).toString(16)}\r\n`);
      const poured = pour(client, 100);
      wire.expectRejection(await client.answer(), 401, 'invalid_api_key');
      await poured;
      if (closes) await client.closed;
      else {
        if (chunked) client.send('\r\n0\r\n\r\n');
        client.send(request(CALL, [wire.auth], 'mine'));
        expect((await client.answer()).body.toString()).toBe('mine');
      }
      expect(client.reader.rest.length).toBe(0);
      client.destroy();
      await wire.expectSound(closes ? 0 : 1);
    });
  });

  it('a client that reads only once all is sent can read the 401 too', async () => {
    for (const headers of [['Connection: close'], []]) {
      const client = await wire.connect();
      client.socket.pause();
      client.send(request(CALL, [JUNK, ...headers, 'Content-Length: 20000000']));
      await pour(client, 20);
      client.socket.resume();
      wire.expectRejection(await client.answer(), 401, 'invalid_api_key');
      client.destroy();
    }
    await wire.expectSound(0);
  });

  it('call after call', async () => {
    const client = await wire.connect();
    for (let i = 0; i < 3; i++) {
      client.send(request(CALL, [JUNK, 'Content-Length: 5000000']));
      await pour(client, 5);
      wire.expectRejection(await client.answer(), 401, 'invalid_api_key');
    }
    client.send(request(CALL, [wire.auth], 'mine'));
    expect((await client.answer()).body.toString()).toBe('mine');
    client.destroy();
    await wire.expectSound(1);
  });

  it.each(['1.1', '1.0'])(
    'an early response of the provider too, over HTTP/%s and a closing connection',
    async (version) => {
      wire.provider.script = (req) => {
        req.socket.write(answer('413 Content Too Large', [], 'enough'));
      };
      const client = await wire.connect();
      const head = request(CALL, [wire.auth, 'Connection: close', 'Content-Length: 50000000']).toString(
        'latin1',
      );
      client.send(head.replace('HTTP/1.1', `HTTP/${version}`));
      const poured = pour(client, 50);
      const reply = await client.answer();
      expect([reply.status, reply.header('connection'), reply.body.toString()]).toEqual([
        413,
        'close',
        'enough',
      ]);
      await poured;
      await client.closed;
      await wire.expectSound(1);
    },
  );
});

describe('early response', () => {
  let wire: Wire;
  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterAll(() => wire.stop());

  const BODY = Buffer.alloc(1_000_000, 'POST /v1/smuggled HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n');
  const LENGTH = [`Content-Length: ${BODY.length}`];
  const CHUNKED = ['Transfer-Encoding: chunked'];
  const framed = (bytes: Buffer, headers: string[]) =>
    headers === CHUNKED
      ? Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
      : bytes;

  // RFC 9112 9.3: a server may answer before it has read the body.
  describe.each([
    ['413 Content Too Large', LENGTH],
    ['413 Content Too Large', CHUNKED],
    ['200 OK', LENGTH],
    ['200 OK', CHUNKED],
  ])('a provider that answers %s early to a body with %s', (status, framing) => {
    never('is heard, and the rest of the body becomes nobody’s request', async () => {
      const answered = deferred();
      wire.provider.script = (req) => {
        req.socket.write(answer(status, ['X-Early: 1'], 'enough'));
        answered.resolve();
      };
      const client = await wire.connect();
      client.send(request('POST /v1/chat/completions', [wire.auth, ...framing]));
      client.send(framed(BODY.subarray(0, 500_000), framing));
      await answered.promise;
      const reply = await client.answer();
      expect([reply.head.split('\r\n')[0], reply.body.toString()]).toEqual([`HTTP/1.1 ${status}`, 'enough']);
      expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
        outcome: 'completed',
        status: Number(status.slice(0, 3)),
        response_bytes: '6',
      });

      // The client goes on with its body and then with its next call on the same connection.
      wire.provider.script = (req) => {
        req.socket.write(answer('200 OK', [], 'next'));
      };
      client.send(framed(BODY.subarray(500_000), framing));
      if (framing === CHUNKED) client.send('0\r\n\r\n');
      client.send(request('GET /v1/models', [wire.auth]));
      expect((await client.answer()).body.toString()).toBe('next');
      client.destroy();
      await wire.expectSound(2);
    });

    it('and closes is heard too, and its response is whole', async () => {
      wire.provider.script = (req) => {
        req.socket.end(answer(status, ['Connection: close'], 'enough'));
      };
      const client = await wire.connect();
      client.send(request('POST /v1/chat/completions', [wire.auth, ...framing]));
      client.send(framed(BODY.subarray(0, 100), framing));
      const reply = await client.answer();
      client.destroy();
      expect(reply.body.toString()).toBe('enough');
      await eventually(() => wire.gateway.row(reply.header('x-gateway-request-id')!));
      await wire.expectSound(1);
    });
  });
});
