import zlib from 'node:zlib';
import fc from 'fast-check';
import { endUserOf } from '../../../src/bodies/end-user.js';
import { JsonWalk } from '../../../src/bodies/json-walk.js';
import { MEMBER_NAMES } from '../../../src/bodies/member-names.js';
import { PlainCopy } from '../../../src/bodies/usage/plain-copy.js';
import { inflationMemory } from '../../../src/bodies/usage/inflation.js';
import { readJsonUsage } from '../../../src/bodies/usage/json-usage.js';
import { AWS_EVENT_STREAM } from '../../../src/bodies/usage/framing/aws-event-stream.js';
import { LINES } from '../../../src/bodies/usage/framing/stream-framing.js';
import { SERVER_SENT_EVENTS } from '../../../src/bodies/usage/framing/server-sent-events.js';
import { readStreamUsage } from '../../../src/bodies/usage/stream-usage.js';
import { NO_USAGE } from '../../../src/bodies/usage/token-usage.js';
import { check } from '../../support/property.js';
import { readBody, readForRow } from '../read-body.js';
import { read } from './read.js';

/** The largest body that is looked through at once: of a request, and what is kept of a response. */
const REQUEST_BYTES = 262_144;
const RESPONSE_BYTES = 131_072;
/** Processor time of a reader in ms: 1 to 6 on an idle machine, 100 to 50,000 where a part of it has no bound. */
const MAX_MS = 50;

/**
 * The processor time that a piece of work takes: the least of several tries, because the first ones are not compiled yet
 * and because other threads of this process count as well.
 */
function cost(work: () => void, enough = MAX_MS): number {
  let least = Infinity;
  for (let i = 0; i < 5 && least >= enough; i++) {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1_000);
  }
  return least;
}

const NO_JSON = new JsonWalk(MEMBER_NAMES, true);
const READERS: [string, (body: Buffer) => void, number][] = [
  ['a request', (body) => endUserOf(readBody(body).json ?? NO_JSON), REQUEST_BYTES],
  ['a request for its row', (body) => endUserOf(readForRow(body).json ?? NO_JSON), REQUEST_BYTES],
  ['a JSON response', (body) => readJsonUsage(kept(body), '/v1/chat/completions'), RESPONSE_BYTES],
  [
    'an event stream',
    (body) => readStreamUsage(kept(body), '/v1/responses', SERVER_SENT_EVENTS),
    RESPONSE_BYTES,
  ],
  ['a stream of lines', (body) => readStreamUsage(kept(body), '/api/chat', LINES), RESPONSE_BYTES],
  [
    'a binary event stream',
    (body) => readStreamUsage(kept(body), '/model/m/converse-stream', AWS_EVENT_STREAM),
    RESPONSE_BYTES,
  ],
];

function kept(body: Buffer) {
  const copy = new PlainCopy();
  copy.add(body);
  return copy.take();
}

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

describe.each(READERS)('reading %s', (_name, reader, bytes) => {
  it('takes a bounded time, whatever it is made of', () => {
    check(
      fc.property(body(bytes), (hostileBody) => {
        expect(cost(() => reader(hostileBody))).toBeLessThan(MAX_MS);
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
  ])('takes no longer for escapes than for the same bytes without: %s', (member) => {
    for (const [begin, end] of [
      ['{', '"a":1}'],
      ['data: {"usage":{"x":1},', '"a":1}\n\n'],
    ] as const) {
      const text = begin + member.repeat(Math.floor((bytes - 40) / member.length)) + end;
      const plain = Buffer.from(text.replaceAll('\\', 'x'));
      const escaped = Buffer.from(text);
      expect(cost(() => reader(escaped), 5)).toBeLessThan(10 * cost(() => reader(plain), 1) + 20);
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
