import zlib from 'node:zlib';
import fc from 'fast-check';
import type { ResponseUsage } from '../../../src/bodies/usage/token-usage.js';
import { check } from '../../support/property.js';
import { countSteps } from '../../support/steps.js';
import { COUNTED_READERS } from '../counted-readers.js';
import { read } from './read.js';
import { FORMATS } from './recorded-formats.js';
import { ANSWERS } from './recorded-responses.js';

const ALL = [...ANSWERS, ...FORMATS];

const TYPES = [
  'application/json',
  'text/event-stream',
  'application/x-ndjson',
  'application/vnd.amazon.eventstream',
] as const;
const contentType = fc.constantFrom(...TYPES);
const endpoint = fc.constantFrom(...new Set(ALL.map((answer) => answer.endpoint)));

function expectInDomain({
  model,
  extra,
  reportedCost,
  error,
  closing,
  job: _,
  ...figures
}: ResponseUsage): void {
  expect(model === null || typeof model === 'string').toBe(true);
  expect([undefined, 'event', 'end']).toContain(closing);
  expect([null, 'object']).toContain(extra === null ? null : typeof extra);
  expect(reportedCost === null || /^\d+(\.\d+)?$/.test(reportedCost)).toBe(true);
  for (const word of [error?.type, error?.code]) expect(word ?? 'x').toMatch(/^[\w.:-]{1,64}$/);
  for (const figure of Object.values(figures)) {
    expect(figure === null || (Number.isInteger(figure) && figure >= 0 && figure <= 2_147_483_647)).toBe(
      true,
    );
  }
}

/** Names the readers look for, with values of every kind. */
const names = fc.constantFrom(
  ...[
    'usage',
    'usageMetadata',
    'model',
    'modelVersion',
    'message',
    'response',
    'type',
    '__proto__',
    'toString',
  ],
  ...[
    'prompt_tokens',
    'input_tokens',
    'output_tokens',
    'prompt_tokens_details',
    'cached_tokens',
    'promptTokenCount',
  ],
);
const { value: shape } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(0, -1, 5, 1e300, 2 ** 31, 0.5, null, true, '', '5', 'message_start'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc
      .array(fc.tuple(names, tie('value')), { maxLength: 5 })
      .map((members) => Object.fromEntries(members) as unknown),
  ),
}));

describe('reading token counts never throws', () => {
  it('on random bytes', async () => {
    const coding = fc.constantFrom(null, 'gzip', 'deflate', 'br', 'zstd', 'br,gzip');
    await check(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 400 }),
        contentType,
        endpoint,
        coding,
        async (body, contentType, endpoint, contentEncoding) => {
          expectInDomain(await read({ body, contentType, endpoint, contentEncoding }));
        },
      ),
      { numRuns: 500 },
    );
  });

  it('on JSON of the right names and the wrong types', async () => {
    await check(
      fc.asyncProperty(fc.array(shape, { maxLength: 4 }), endpoint, async (values, endpoint) => {
        const texts = values.map((value) => JSON.stringify(value));
        const sse = texts.map((text) => `data: ${text}\n\n`).join('');
        expectInDomain(await read({ endpoint, body: texts[0] ?? '' }));
        expectInDomain(await read({ endpoint, body: JSON.stringify(values) }));
        expectInDomain(await read({ endpoint, body: sse, contentType: 'text/event-stream' }));
        const padding = 'x'.repeat(140_000);
        expectInDomain(await read({ endpoint, body: `{"text":"${padding}","a":${texts[0] ?? 'null'}}` }));
        expectInDomain(
          await read({ endpoint, body: `data: ${padding}\n\n${sse}`, contentType: 'text/event-stream' }),
        );
      }),
      { numRuns: 300 },
    );
  });

  it('on recorded responses with a few bytes changed or gone', async () => {
    await check(
      fc.asyncProperty(
        fc.constantFrom(...ALL),
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }),
        fc.nat(),
        async (answer, changes, end) => {
          const body = Buffer.from(answer.body as string);
          for (const [at, byte] of changes) body[at % body.length] = byte;
          expectInDomain(await read({ ...answer, body: body.subarray(0, end % (body.length + 1)) }));
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('reading token counts takes few steps', () => {
  const MIB = 1_048_576;
  const fill = (text: string, length = MIB - 1_000) => text.repeat(Math.floor(length / text.length));

  it.each<[string, string, string]>([
    ['brackets nested to the bottom', TYPES[0], `{"usage":${fill('[')}`],
    ['a usage of nested brackets', TYPES[0], `{"usage":${fill('[', 200_000)}${fill(']', 200_000)}}`],
    ['a million members', TYPES[0], `{${fill('"a":1,')}"b":2}`],
    ['backslashes', TYPES[0], `{"a":"${fill('\\\\')}`],
    ['escaped quotes', TYPES[0], `{"a":"${fill('\\"')}`],
    ['spaces', TYPES[0], fill(' ')],
    ['an array of empty objects', TYPES[0], `[${fill('{},')}`],
    ['lines that are no field', TYPES[1], fill('x\n')],
    ['one line', TYPES[1], `data: ${fill('x')}`],
    ['events nested to the bottom', TYPES[1], `data: {"usage":{"a":${fill('[')}\n\n`],
    ['carriage returns', TYPES[1], fill('data: {}\r\r')],
    ['one late carriage return', TYPES[1], `${fill('data: {}\n\n')}\r`],
    ['data lines of one event', TYPES[1], fill('data:\n')],
    ['events without figures', TYPES[1], fill('data: {"usage":{}}\n\n')],
    ['blank lines', TYPES[1], fill('\n')],
    ['line ends of another kind', TYPES[1], fill('\r')],
    ['escapes that are none', TYPES[0], `{${fill('"\\x":0,')}"z":1}`],
    ['usages that are none', TYPES[0], `{${fill('"usage":{x},')}"z":1}`],
    ['an event of escapes that are none', TYPES[1], `data: {"usage":{"x":1},${fill('"\\x":0,')}"z":1}\n\n`],
  ])('on %s', async (_name, contentType, body) => {
    const gzip = (bytes: string | Buffer) => zlib.gzipSync(bytes, { level: 9 });
    const encoded = gzip(body);
    for (const answer of [
      { body },
      { body: encoded, contentEncoding: 'gzip' },
      { body: gzip(gzip(encoded)), contentEncoding: 'gzip, gzip, gzip' },
    ]) {
      const { steps, result } = await countSteps<ResponseUsage>(COUNTED_READERS, 'read', {
        contentType,
        ...answer,
      });
      expectInDomain(result);
      // By the square of the length it would be a thousand times as many.
      expect(steps / body.length).toBeLessThan(20);
    }
  });
});
