import zlib from 'node:zlib';
import { inflate } from '../../src/request-log/inflate.js';
import { NO_USAGE } from '../../src/request-log/token-figures.js';
import { read } from './read.js';
import { ANSWERS, CHAT_USAGE, dataStream, usage } from './recorded-answers.js';

const MIB = 1_048_576;
const { zstdCompressSync } = zlib as { zstdCompressSync?: (body: Buffer) => Buffer };

type Encoder = (body: Buffer) => Buffer;
const ENCODINGS: [string, Encoder][] = [
  ['identity', (body) => body],
  ['gzip', zlib.gzipSync],
  ['X-GZIP', zlib.gzipSync],
  ['deflate', zlib.deflateSync],
  ['deflate', zlib.deflateRawSync],
  ['br', zlib.brotliCompressSync],
  [' gzip , br ', (body) => zlib.brotliCompressSync(zlib.gzipSync(body))],
  ['identity, gzip', zlib.gzipSync],
  ...(zstdCompressSync ? [['zstd', zstdCompressSync] as [string, Encoder]] : []),
];

/** Text that no compressor makes small. */
function noise(length: number): string {
  let state = 1;
  return Array.from({ length }, () => {
    state = (state * 48_271) % 2_147_483_647;
    return 'abcdefghijklmnopqrstuvwxyz0123456789'[state % 36];
  }).join('');
}

describe('token figures of encoded answers', () => {
  it.each(ENCODINGS)('in %s are read like plain ones', async (contentEncoding, encode) => {
    for (const answer of ANSWERS) {
      const body = encode(Buffer.from(answer.body));
      expect(await read({ ...answer, body, contentEncoding })).toEqual(answer.usage);
    }
  });

  it.each(ENCODINGS)('in %s, cut off anywhere, are not invented', async (contentEncoding, encode) => {
    const body = encode(Buffer.from(JSON.stringify({ model: 'm', text: noise(200), usage: CHAT_USAGE })));
    for (let length = 0; length < body.length; length++) {
      const found = await read({ body: body.subarray(0, length), contentEncoding });
      expect([null, 1117]).toContain(found.prompt_tokens);
      expect([null, 'm']).toContain(found.model);
    }
  });

  it.each(['compress', 'gzip, unheard-of', 'constructor', '__proto__', 'gzip,gzip,gzip,gzip', ',,,x'])(
    'in %s are unknown',
    async (contentEncoding) => {
      const body = zlib.gzipSync('{"model":"m","usage":{"prompt_tokens":5}}');
      expect(await read({ body, contentEncoding })).toEqual(NO_USAGE);
    },
  );

  it('are unknown where the bytes are not in the encoding they claim', async () => {
    for (const contentEncoding of ['gzip', 'deflate', 'br', 'zstd']) {
      expect(await read({ body: '{"usage":{"prompt_tokens":5}}', contentEncoding })).toEqual(NO_USAGE);
    }
  });

  it('need the whole body: of a larger one only the model is read, from its beginning', async () => {
    const json = { model: 'm', text: noise(400_000), usage: CHAT_USAGE };
    const gzip = { body: zlib.gzipSync(JSON.stringify(json)), contentEncoding: 'gzip' };
    expect(gzip.body.length).toBeGreaterThan(131_072);
    expect(await read(gzip)).toEqual(usage('m'));
    const early = { model: 'm', usage: CHAT_USAGE, text: noise(400_000) };
    expect(await read({ ...gzip, body: zlib.gzipSync(JSON.stringify(early)) })).toEqual(usage('m'));
    const stream = dataStream({ model: 'm', usage: { prompt_tokens: 1 } }, json);
    const events = { body: zlib.gzipSync(stream), contentEncoding: 'gzip', contentType: 'text/event-stream' };
    expect(await read(events)).toEqual(usage('m'));
  });

  it('are not looked for past the first MiB of what a small body inflates to', async () => {
    const body = zlib.gzipSync(JSON.stringify({ model: 'm', text: ' '.repeat(MIB), usage: CHAT_USAGE }));
    expect(await read({ body, contentEncoding: 'gzip' })).toEqual(usage('m'));
  });
});

describe('a bomb', () => {
  // 1 GB of zeros, made from 64 MB pieces so that the test itself stays small.
  const piece = Buffer.alloc(67_108_864);
  const bombs: [string, Buffer][] = [
    ['gzip', Buffer.concat(Array<Buffer>(16).fill(zlib.gzipSync(piece)))],
    ['br', zlib.brotliCompressSync(piece, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })],
    ['gzip, gzip', zlib.gzipSync(zlib.gzipSync(piece))],
    ['br, gzip', zlib.gzipSync(zlib.brotliCompressSync(piece))],
  ];

  it.each(bombs)('in %s costs at most a MiB and little time', async (contentEncoding, body) => {
    const before = process.cpuUsage();
    expect(await read({ body, contentEncoding })).toEqual(NO_USAGE);
    // Processor time, whatever else runs here: some milliseconds; whole it would be half a second and more.
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(250);
    expect(inflate(body.subarray(0, 131_072), true, contentEncoding)?.bytes.length ?? 0).toBeLessThanOrEqual(
      MIB,
    );
  });
});
