import zlib from 'node:zlib';
import fc from 'fast-check';
import { inflationMemory } from '../../../src/bodies/usage/inflation.js';
import { NO_USAGE } from '../../../src/bodies/usage/token-usage.js';
import { check } from '../../support/property.js';
import { countSteps } from '../../support/steps.js';
import { COUNTED_READERS } from '../counted-readers.js';
import { read } from './read.js';

/** The largest body that is looked through at once: of a request, and what is kept of a response. */
const REQUEST_BYTES = 262_144;
const RESPONSE_BYTES = 131_072;
/** Of any reader for each byte: up to 18, but hundreds where a part of it has no bound. */
const MAX_STEPS = 60;

/** Of test/bodies/counted-readers.ts. */
const READERS: [string, number][] = [
  ['request', REQUEST_BYTES],
  ['requestForRow', REQUEST_BYTES],
  ['json', RESPONSE_BYTES],
  ['eventStream', RESPONSE_BYTES],
  ['lines', RESPONSE_BYTES],
  ['binaryEventStream', RESPONSE_BYTES],
];

const begins = fc.constantFrom(
  '{',
  '[{',
  'data: {',
  'data: {"usage":{"x":1},',
  'data: {"response":{',
  '{"a":"',
  '\ufeff',
  '',
);
const ends = fc.constantFrom('', '"a":1}', '"a":1}\n\n', ']', '\n\n', '}}\n\n', '"}');
const hostile = fc.constantFrom(
  ...[
    '"\\x":0,',
    '"\\u":0,',
    '"\\/":0,',
    '"mod\\u0065l":"m",',
    '"\\\\":0,',
    '"":0,',
    `"${'k'.repeat(3_000)}":0,`,
  ],
  ...['"usage":{x},', '"usage":{},', '"usage":{"prompt_tokens":5},', '"usageMetadata":{x},', '"usage":null,'],
  ...[
    '"model":"\\x",',
    '"model":"m",',
    '"model":"",',
    '"type":"\\x",',
    '"response":{"usage":{x}},',
    '"message":{',
  ],
  ...['[', '{', '{"a":', ']', '}', '},{', '"', '\\', '\\"', ' ', ',', '\u0000', '\ufeff'],
  ...[
    '\r',
    '\n',
    '\r\n',
    '\r\r',
    '\n\n',
    '\n\ndata: {',
    '\n\ndata: {"usage":{',
    'data:\n',
    ':\n',
    'x\n',
    'id:1\n\n',
  ],
  ...[
    'data: {"usage":{x}}\n\n',
    'data: {"usage":{"a":1}}\n\n',
    'data: {"model":"\\x"}\n\n',
    'retry: x\n',
    // Preludes of Amazon's event stream that look right until their checksum is computed, and one that is right.
    '\0\0\0\u0010\0\0\0\0',
    '\0\0\0\0\0\0\0',
    '\n{"usage":{x}}\n',
    '\n{"eval_count":1x}\n',
    '"usage" ',
  ],
);
/** A few fragments over and over, to the largest size that is read. */
const body = (bytes: number) =>
  fc.tuple(begins, fc.array(hostile, { minLength: 1, maxLength: 4 }), ends).map(([begin, parts, end]) => {
    const middle = Buffer.from(parts.join(''));
    const size = bytes - Buffer.byteLength(begin + end) - 10;
    const repeated = Buffer.alloc(Math.floor(size / middle.length) * middle.length, middle);
    return Buffer.concat([Buffer.from(begin), repeated, Buffer.from(end)]);
  });

describe.each(READERS)('reading %s', (reader, bytes) => {
  const stepsPerByte = async (body: Buffer) =>
    (await countSteps(COUNTED_READERS, reader, body)).steps / body.length;

  it('takes a bounded number of steps, whatever it is made of', async () => {
    await check(
      fc.asyncProperty(body(bytes), async (hostileBody) => {
        expect(await stepsPerByte(hostileBody)).toBeLessThan(MAX_STEPS);
      }),
      { numRuns: 60 },
    );
  });

  it.each([
    '"\\x":0,',
    '"\\u":0,',
    '"\\/":0,',
    '"\\u006d":0,',
    '"usage":{"\\x"},',
    '"model":"\\x",',
    '"type":"\\x",',
  ])('takes hardly more steps for escapes than for the same bytes without: %s', async (member) => {
    for (const [begin, end] of [
      ['{', '"a":1}'],
      ['data: {"usage":{"x":1},', '"a":1}\n\n'],
    ] as const) {
      const text = begin + member.repeat(Math.floor((bytes - 40) / member.length)) + end;
      const plain = Buffer.from(text.replaceAll('\\', 'x'));
      const escaped = Buffer.from(text);
      expect(await stepsPerByte(escaped)).toBeLessThan(4 * (await stepsPerByte(plain)) + 10);
    }
  });
});

describe('what is read', () => {
  const count = fc.integer({ min: 0, max: 2_000 });
  const members = fc.array(
    fc.tuple(
      fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('a', 'Usage', 'usage"')),
      fc.jsonValue(),
    ),
    { maxLength: 6 },
  );

  it('of a valid document is what JSON.parse would give; null where it is larger than what is kept', async () => {
    await check(
      fc.asyncProperty(
        members,
        members,
        fc.option(fc.record({ prompt_tokens: count, completion_tokens: count }), { nil: undefined }),
        fc.option(fc.string({ unit: 'binary', maxLength: 20 }), { nil: undefined }),
        fc.constantFrom(0, 0, 100_000, 200_000),
        fc.nat(2),
        async (before, after, usage, model, padding, indent) => {
          const text = JSON.stringify(
            {
              pad: '\\"{'.repeat(padding / 6),
              ...Object.fromEntries(before),
              model,
              usage,
              ...Object.fromEntries(after),
            },
            null,
            indent,
          );
          const parsed = JSON.parse(text) as {
            usage?: { prompt_tokens?: unknown; completion_tokens?: unknown };
            model?: unknown;
          };
          const expected = {
            ...NO_USAGE,
            model: typeof parsed.model === 'string' && parsed.model !== '' ? parsed.model : null,
            promptTokens: parsed.usage?.prompt_tokens ?? null,
            completionTokens: parsed.usage?.completion_tokens ?? null,
          };
          const isWhole = Buffer.byteLength(text) <= RESPONSE_BYTES;
          for (const answer of [
            { body: text },
            { body: zlib.gzipSync(text), contentEncoding: 'gzip' },
            { body: `data: ${JSON.stringify(parsed)}\n\n`, contentType: 'text/event-stream' },
          ]) {
            const found = await read(answer);
            if (isWhole) expect(found).toEqual(expected);
            else expect([null, expected.promptTokens]).toContain(found.promptTokens);
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  it('of hostile bytes is never invented, also compressed, and leaves nothing open', async () => {
    const coding = fc.constantFrom<[string, (body: Buffer) => Buffer]>(
      ['identity', (bytes) => bytes],
      ['gzip', zlib.gzipSync],
      ['gzip', (bytes) => zlib.gzipSync(zlib.gzipSync(bytes))],
      ['gzip, gzip', (bytes) => zlib.gzipSync(zlib.gzipSync(bytes))],
      ['deflate', zlib.deflateRawSync],
      [
        'br',
        (bytes) => zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
      ],
    );
    const contentType = fc.constantFrom('application/json', 'text/event-stream');
    await check(
      fc.asyncProperty(
        fc.oneof(body(1_000), body(RESPONSE_BYTES), body(1_500_000)),
        coding,
        contentType,
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (plain, [contentEncoding, encode], contentType, part) => {
          const encoded = encode(plain);
          const answer = { contentEncoding, contentType };
          for (const bytes of [encoded, encoded.subarray(0, Math.ceil(part * encoded.length))]) {
            const found = await read({ ...answer, body: bytes });
            expect([null, 5]).toContain(found.promptTokens);
            expect(found).toMatchObject({
              completionTokens: null,
              cachedTokens: null,
              reasoningTokens: null,
            });
          }
          expect(inflationMemory()).toBe(0);
        },
      ),
      { numRuns: 100 },
    );
  });
});
