import { request } from '../support/raw-client.js';
import { chunk, LAST_CHUNK } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

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

it.each(STREAMS)('a stream with %s arrives byte for byte, however it is framed', async (_, writes) => {
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
