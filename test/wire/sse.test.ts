import { gzipSync } from 'node:zlib';
import { deferred } from '../support/deferred.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, chunk, LAST_CHUNK, RawProvider, STREAM_HEAD } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

let gateway: TestGateway;
let provider: RawProvider;

beforeAll(async () => {
  provider = await RawProvider.start(() => {});
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

describe('events', () => {
  never('passes each event on before the next one exists', async () => {
    const events = [
      ': hello\n\n',
      'data: {"a":"é"}\r\n\r\n',
      'event: x\ndata: 2\n\n',
      'data: [DONE]\n\n',
    ].map((event) => Buffer.from(event));
    // The provider sends an event only after the client has confirmed the one before.
    const confirmed = events.map(() => deferred());
    provider.script = async (req) => {
      await req.body;
      req.socket.write(STREAM_HEAD);
      for (const [i, event] of events.entries()) {
        req.socket.write(chunk(event));
        await confirmed[i]!.promise;
      }
      req.socket.write(LAST_CHUNK);
    };
    const client = await RawClient.connect(gateway.port);
    client.send(
      request('POST /v1/chat/completions', [`Authorization: Bearer ${gateway.key}`], '{"stream":true}'),
    );
    const head = await client.head();
    expect(head.header('transfer-encoding')).toBe('chunked');
    for (const [i, event] of events.entries()) {
      expect((await client.reader.take(chunk(event).length)).equals(chunk(event))).toBe(true);
      confirmed[i]!.resolve();
    }
    expect((await client.reader.take(5)).toString()).toBe(LAST_CHUNK);
    const row = await gateway.row(head.header('x-gateway-request-id')!);
    expect(row).toMatchObject({
      outcome: 'completed',
      streamed: true,
      response_bytes: String(Buffer.concat(events).length),
    });
    client.destroy();
  });

  it('sends the head before there is a body, with its latin-1 bytes as they are', async () => {
    const headSeen = deferred();
    provider.script = async (req) => {
      await req.body;
      req.socket.write(
        Buffer.from('HTTP/1.1 200 OK\r\nX-Name: caf\xe9\r\nTransfer-Encoding: chunked\r\n\r\n', 'latin1'),
      );
      await headSeen.promise;
      req.socket.write(chunk('late'));
      req.socket.write(LAST_CHUNK);
    };
    const client = await RawClient.connect(gateway.port);
    client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${gateway.key}`], '{}'));
    const head = await client.head();
    expect(head.header('x-name')).toBe('caf\xe9');
    headSeen.resolve();
    expect((await client.reader.body(head.headers)).bytes.toString()).toBe('late');
    client.destroy();
  });
});

describe('bytes', () => {
  let wire: Wire;
  beforeAll(async () => {
    wire = await Wire.start();
  });
  afterAll(() => wire.stop());

  const utf8 = Buffer.from('data: {"t":"é€𝄞"}\n\n');
  const STREAMS: [what: string, writes: (string | Buffer)[]][] = [
    ['comments', [': ping\n\n', 'data: 1\n\n', ':\n\n', 'data: [DONE]\n\n']],
    ['CRLF and CR line ends', ['data: 1\r\n\r\n', 'data: 2\r\r', 'event: x\r\ndata: 3\r\n\r\n']],
    ['characters split between writes', Array.from(utf8, (byte) => Buffer.from([byte]))],
    ['no final blank line', ['data: 1\n\n', 'data: [DONE]\n']],
    ['no line end at all', ['data: {"unfinished":']],
    ['a byte order mark and bytes that are no UTF-8', [Buffer.from('efbbbf646174613a20ff80c30a0a', 'hex')]],
    ['multi-line data, ids and retries', ['id: 1\nretry: 5\ndata: a\ndata: b\n\n', 'id\ndata\n\n']],
    ['an event of 10 MB', ['data: ', Buffer.alloc(10_000_000, 'é'), '\n\n', 'data: [DONE]\n\n']],
    ['nothing', []],
  ];

  const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n';

  never.each(STREAMS)('a stream with %s arrives byte for byte, however it is framed', async (_, writes) => {
    const whole = Buffer.concat(writes.map((part) => Buffer.from(part as string)));
    for (const framing of ['chunked', 'length', 'close']) {
      wire.provider.script = async (req) => {
        await req.body;
        if (framing === 'chunked') req.socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
        else if (framing === 'length') req.socket.write(`${HEAD}Content-Length: ${whole.length}\r\n\r\n`);
        else req.socket.write(`${HEAD}Connection: close\r\n\r\n`);
        for (const part of writes) {
          await new Promise((done) => req.socket.write(framing === 'chunked' ? chunk(part) : part, done));
        }
        if (framing === 'chunked') req.socket.write(LAST_CHUNK);
        if (framing === 'close') req.socket.end();
      };
      const client = await wire.connect();
      client.send(request('POST /v1/chat/completions', [wire.auth], '{"stream":true}'));
      const reply = await client.answer();
      client.destroy();
      expect(reply.header('content-type')).toBe('text/event-stream; charset=utf-8');
      expect(reply.body.equals(whole)).toBe(true);
      expect(await wire.gateway.row(reply.header('x-gateway-request-id')!)).toMatchObject({
        outcome: 'completed',
        streamed: true,
        response_bytes: String(whole.length),
      });
    }
  });
});

describe('token figures', () => {
  const USAGE = {
    prompt_tokens: 11,
    completion_tokens: 7,
    prompt_tokens_details: { cached_tokens: 3 },
    completion_tokens_details: { reasoning_tokens: 2 },
  };
  const FIGURES = { prompt_tokens: 11, completion_tokens: 7, cached_tokens: 3, reasoning_tokens: 2 };

  async function rowOf(path: string, body: string): Promise<Record<string, unknown>> {
    const client = await RawClient.connect(gateway.port);
    client.send(request(`POST ${path}`, [`Authorization: Bearer ${gateway.key}`], body));
    const reply = await client.answer();
    client.destroy();
    return gateway.row(reply.header('x-gateway-request-id')!);
  }

  it.each([
    ['plain', [], (bytes: Buffer) => bytes],
    ['gzip', ['Content-Encoding: gzip'], (bytes: Buffer) => gzipSync(bytes)],
  ])('reads the figures of a JSON response, %s, and the model of the request', async (_, headers, encode) => {
    provider.script = async (req) => {
      await req.body;
      const body = encode(Buffer.from(JSON.stringify({ model: 'gpt-4o-2024-08-06', usage: USAGE })));
      req.socket.write(answer('200 OK', ['Content-Type: application/json', ...headers], body));
    };
    const row = await rowOf('/v1/chat/completions', '{"messages":[{"model":"no"}],"model":"gpt-4o"}');
    expect(row).toMatchObject({ ...FIGURES, model: 'gpt-4o', streamed: false });
  });

  it('reads the figures at the end of a stream, and the model of the response where the request names none', async () => {
    provider.script = async (req) => {
      await req.body;
      req.socket.write(
        'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n',
      );
      req.socket.write(chunk('data: {"model":"gpt-4o-mini","choices":[{"delta":{"content":"hi"}}]}\n\n'));
      req.socket.write(
        chunk(`data: {"model":"gpt-4o-mini","choices":[],"usage":${JSON.stringify(USAGE)}}\n\n`),
      );
      req.socket.write(chunk('data: [DONE]\n\n'));
      req.socket.write(LAST_CHUNK);
    };
    const row = await rowOf('/v1/chat/completions', '{"stream":true}');
    expect(row).toMatchObject({ ...FIGURES, model: 'gpt-4o-mini', streamed: true });
  });

  it('leaves figures null where the provider gives none', async () => {
    provider.script = async (req) => {
      await req.body;
      req.socket.write(
        answer('200 OK', ['Content-Type: application/json'], '{"choices":[{"text":"four words of text"}]}'),
      );
    };
    const row = await rowOf('/v1/chat/completions', 'not json');
    expect(row).toMatchObject({
      model: null,
      prompt_tokens: null,
      completion_tokens: null,
      cached_tokens: null,
      reasoning_tokens: null,
    });
  });
});
