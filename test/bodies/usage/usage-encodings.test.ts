import zlib from 'node:zlib';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import type { CompressedCopy } from '../../../src/bodies/usage/compressed-copy.js';
import { inflationMemory } from '../../../src/bodies/usage/inflation.js';
import { NO_USAGE } from '../../../src/bodies/usage/token-usage.js';
import { copyFor, readUsage } from '../../../src/bodies/usage/usage-reader.js';
import { eventually } from '../../support/eventually.js';
import { check } from '../../support/property.js';
import { read } from './read.js';
import { FORMATS } from './recorded-formats.js';
import { ANSWERS, CHAT_USAGE, dataStream, usage } from './recorded-responses.js';

const { zstdCompressSync } = zlib as { zstdCompressSync?: (body: Buffer) => Buffer };

type Encoder = (body: Buffer) => Buffer;
const ENCODINGS: [string, Encoder][] = [
  ['identity', (body) => body],
  ['gzip', zlib.gzipSync],
  ['X-GZIP', zlib.gzipSync],
  ['deflate', zlib.deflateSync],
  ['deflate', zlib.deflateRawSync],
  ['br', (body) => zlib.brotliCompressSync(body, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } })],
  [' gzip ,', zlib.gzipSync],
  ['identity, gzip', zlib.gzipSync],
  ...(zstdCompressSync ? [['zstd', zstdCompressSync] as [string, Encoder]] : []),
];

const NOISE = Buffer.alloc(1_500_000);
for (let at = 0, state = 1; at < NOISE.length; at++) {
  state = (state * 48_271) % 2_147_483_647;
  NOISE[at] = 'abcdefghijklmnopqrstuvwxyz0123456789'.charCodeAt(state % 36);
}
/** Text that no compressor makes small. */
const noise = (length: number): string => NOISE.toString('latin1', 0, length);

describe('token counts of encoded responses', () => {
  it.each(ENCODINGS)('in %s are read like plain ones', async (contentEncoding, encode) => {
    for (const answer of [...ANSWERS, ...FORMATS]) {
      const body = encode(Buffer.from(answer.body as string));
      expect(await read({ ...answer, body, contentEncoding })).toEqual(answer.usage);
    }
  });

  it('do not depend on the coding nor on where the chunks were cut', async () => {
    await check(
      fc.asyncProperty(
        fc.constantFrom(...ANSWERS, ...FORMATS),
        fc.constantFrom(...ENCODINGS),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 }),
        async (answer, [contentEncoding, encode], places) => {
          const body = encode(Buffer.from(answer.body as string));
          const cuts = places.map((place) => Math.floor(place * body.length)).sort((a, b) => a - b);
          expect(await read({ ...answer, body, contentEncoding }, ...cuts)).toEqual(answer.usage);
        },
      ),
      { numRuns: 400 },
    );
  });

  it.each(ENCODINGS)('in %s, cut off anywhere, are not invented', async (contentEncoding, encode) => {
    const body = encode(Buffer.from(JSON.stringify({ model: 'm', text: noise(200), usage: CHAT_USAGE })));
    for (let length = 0; length < body.length; length++) {
      const found = await read({ body: body.subarray(0, length), contentEncoding });
      expect([null, 1117]).toContain(found.promptTokens);
      expect([null, 'm']).toContain(found.model);
    }
  });

  it.each(['compress', 'gzip, unheard-of', 'constructor', '__proto__', 'gzip, gzip', 'br, gzip', ',,,x'])(
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
});

const CHAT = '/v1/chat/completions';
const JSON_TYPE = 'application/json';
const SSE = 'text/event-stream';
const COMPRESSIONS = ENCODINGS.filter(([name]) => ['gzip', 'deflate', 'br', 'zstd'].includes(name));
const FIGURES: [number, number, number, number] = [1117, 46, 1024, 12];
/** Fast, as a provider compresses. */
const gzip = (body: string | Buffer) => zlib.gzipSync(body, { level: 1 });

/** A copy of what came of a response so far. */
function copied(chunks: readonly Buffer[], contentType = JSON_TYPE, coding = 'gzip'): CompressedCopy {
  const copy = copyFor(contentType, coding, CHAT) as CompressedCopy;
  for (const chunk of chunks) copy.add(chunk);
  return copy;
}

function cut(body: Buffer, size: number): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < body.length; at += size) chunks.push(body.subarray(at, at + size));
  return chunks;
}

describe('token counts of large compressed responses', () => {
  // Nothing here may leave a stream open.
  afterEach(() => expect(inflationMemory()).toBe(0));

  it.each([['identity', (body: Buffer) => body] as [string, Encoder], ...COMPRESSIONS])(
    'of 64 embeddings in %s',
    async (contentEncoding, encode) => {
      const vector = () => randomBytes(6_144).toString('base64');
      const data = Array.from({ length: 64 }, (_, index) => ({ index, embedding: vector() }));
      const body = encode(
        Buffer.from(JSON.stringify({ data, model: 'm', usage: { prompt_tokens: 512, total_tokens: 512 } })),
      );
      expect(body.length).toBeGreaterThan(350_000);
      expect(await read({ body, contentEncoding, endpoint: '/v1/embeddings' })).toEqual(usage('m', 512));
    },
  );

  it.each(COMPRESSIONS)(
    'are those of the same response without %s, wherever they stand',
    async (name, encode) => {
      const padding = fc.constantFrom(0, 1_000, 100_000, 140_000, 500_000, 1_500_000);
      await check(
        fc.asyncProperty(
          padding,
          padding,
          fc.boolean(),
          fc.boolean(),
          async (before, after, streamed, random) => {
            const text = (length: number) => (random ? noise(length) : 'word '.repeat(length / 5));
            const parts = [{ model: 'm', text: text(before) }, { usage: CHAT_USAGE }, { text: text(after) }];
            const body = Buffer.from(
              streamed
                ? dataStream(...parts)
                : JSON.stringify(Object.assign({}, parts[0], parts[1], { end: parts[2] })),
            );
            const contentType = streamed ? SSE : JSON_TYPE;
            const found = await read({ body: encode(body), contentEncoding: name, contentType });
            expect(found).toEqual(await read({ body, contentType }));
            if (after <= 1_000) expect(found).toEqual(usage('m', ...FIGURES));
          },
        ),
        { numRuns: 12 },
      );
    },
  );

  it('of 5 MB of gzip', async () => {
    const body = gzip(
      JSON.stringify({ model: 'm', text: randomBytes(5_000_000).toString('base64'), usage: CHAT_USAGE }),
    );
    expect(body.length).toBeGreaterThan(5_000_000);
    expect(await read({ body, contentEncoding: 'gzip' })).toEqual(usage('m', ...FIGURES));
  });

  it('of a long stream of events, inflated while it arrives', async () => {
    const events = Array.from({ length: 4_000 }, (_, i) => ({
      model: 'm',
      i,
      text: randomBytes(60).toString('base64'),
    }));
    const body = gzip(dataStream(...events, { model: 'm', usage: CHAT_USAGE }));
    const copy = copied([], SSE);
    const memory: number[] = [];
    for (const chunk of cut(body, 1_500)) {
      copy.add(chunk);
      memory.push(inflationMemory());
      await turn();
    }
    expect(memory[0]).toBe(0);
    expect(Math.max(...memory)).toBeGreaterThan(0);
    expect(await readUsage(SSE, CHAT, copy)).toMatchObject(usage('m', ...FIGURES));
  });

  it('are null where the response was cut off', async () => {
    const body = gzip(JSON.stringify({ model: 'm', text: noise(600_000), usage: CHAT_USAGE }));
    for (const length of [10_000, 100_000, 140_000, 300_000, body.length - 30]) {
      const found = await read({ body: body.subarray(0, length), contentEncoding: 'gzip' });
      expect(found).toEqual(usage('m'));
    }
    // Only the checksum is missing: everything that counts is there.
    const short = { body: body.subarray(0, body.length - 4), contentEncoding: 'gzip' };
    expect(await read(short)).toEqual(usage('m', ...FIGURES));
  });

  it('are null where a byte of it is wrong', async () => {
    for (const length of [3_000, 60_000, 600_000]) {
      const body = gzip(JSON.stringify({ model: 'm', usage: CHAT_USAGE, text: noise(length) }));
      for (const at of [0, body.length >> 1, body.length - 8]) {
        const broken = Buffer.from(body);
        broken[at]! ^= 0xff;
        const found = await read({ body: broken, contentEncoding: 'gzip' });
        expect([found.promptTokens, found.completionTokens]).toEqual([null, null]);
        expect([null, 'm']).toContain(found.model);
      }
    }
  });

  it('do not depend on bytes behind the end of the compressed data', async () => {
    for (const length of [100, 600_000]) {
      const text = JSON.stringify({ model: 'm', text: noise(length), usage: CHAT_USAGE });
      for (const [contentEncoding, body, after] of [
        ['gzip', gzip(text), Buffer.alloc(300_000)],
        ['deflate', zlib.deflateSync(text), Buffer.alloc(300_000, 'x')],
      ] as const) {
        const followed = Buffer.concat([body, after]);
        expect(await read({ body: followed, contentEncoding })).toEqual(usage('m', ...FIGURES));
      }
    }
  });

  it('are null where the response comes faster than it can be inflated', async () => {
    const body = zlib.gzipSync(randomBytes(40_000_000), { level: 0 });
    const copy = copied(cut(body, 65_536));
    expect(await readUsage(JSON_TYPE, CHAT, copy)).toEqual(NO_USAGE);
  });

  it('are null for those of very many at once that memory has no place for', async () => {
    const body = gzip(JSON.stringify({ model: 'm', text: noise(250_000), usage: CHAT_USAGE }));
    expect(body.length).toBeGreaterThan(140_000);
    const copies = Array.from({ length: 400 }, () => copied(cut(body, 70_000)));
    expect(inflationMemory()).toBeGreaterThan(100_000_000);
    expect(inflationMemory()).toBeLessThan(136_000_000);
    const found = await Promise.all(copies.map(async (copy) => readUsage(JSON_TYPE, CHAT, copy)));
    const counted = found.filter(({ promptTokens }) => promptTokens === 1117);
    expect(counted.length).toBeGreaterThan(100);
    expect(counted.length).toBeLessThan(400);
    expect(found.filter(({ promptTokens }) => promptTokens !== null)).toHaveLength(counted.length);
  });

  it('are released where nobody reads them', async () => {
    const copy = copied(cut(gzip(noise(600_000)), 10_000));
    expect(inflationMemory()).toBeGreaterThan(0);
    copy.discard();
    await eventually(() => inflationMemory() === 0);
  });
});

describe('a bomb', () => {
  const piece = Buffer.alloc(67_108_864);
  // 1 GB of zeros, made from 64 MB pieces so that the test itself stays small.
  const zippedPiece = zlib.gzipSync(piece);
  const gigabyte = Buffer.concat(Array<Buffer>(16).fill(zippedPiece));
  const bombs: [string, string, Buffer][] = [
    ['gzip of 10 MB', 'gzip', zlib.gzipSync(Buffer.alloc(10_000_000))],
    ['gzip of 1 GB', 'gzip', gigabyte],
    ['gzip of 1 GB, three times', 'gzip, gzip, gzip', gzip(gzip(gigabyte))],
    ['gzip of 1 GB, three times, said to be one', 'gzip', gzip(gzip(gigabyte))],
    [
      'br of 64 MB',
      'br',
      zlib.brotliCompressSync(piece, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
    ],
    ['gzip of members', 'gzip', zlib.gzipSync('{"":0,'.repeat(2_000_000))],
    [
      'deflate of a usage that never ends',
      'deflate',
      zlib.deflateSync(`{"usage":{${'"a":1,'.repeat(2_000_000)}`),
    ],
  ];

  /** Bytes that all decoders have given so far. */
  let inflated = 0;
  const push = Reflect.get(Readable.prototype, 'push') as (this: Readable, chunk: unknown) => boolean;
  beforeEach(() => {
    inflated = 0;
    jest.spyOn(Readable.prototype, 'push').mockImplementation(function (this: Readable, chunk: unknown) {
      if (this.constructor.name in zlib) inflated += (chunk as Buffer | null)?.length ?? 0;
      return push.call(this, chunk);
    });
  });
  afterEach(() => jest.restoreAllMocks());

  it.each(bombs)(
    'in %s is inflated in part only, and takes no memory for long',
    async (_name, contentEncoding, body) => {
      expect(await read({ body, contentEncoding })).toEqual(NO_USAGE);
      // Up to a hundred times its size, and what zlib had begun.
      expect(inflated).toBeLessThan(Math.max(4_194_304, 100 * body.length) + 1_000_000);
      expect(inflationMemory()).toBe(0);
    },
  );
});
