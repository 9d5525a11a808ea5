import { isStreamed } from '../../../src/bodies/usage/framing/stream-framing.js';
import { NO_USAGE } from '../../../src/bodies/usage/token-usage.js';
import { read } from './read.js';
import { FORMATS } from './recorded-formats.js';
import { ANSWERS, CHAT_USAGE, messageStream, usage } from './recorded-responses.js';

const ALL = [...ANSWERS, ...FORMATS];
/** Those with text that a test can change. */
const EVENT_STREAMS = ALL.flatMap((answer) =>
  typeof answer.body === 'string' && answer.contentType.startsWith('text/event-stream')
    ? [{ ...answer, body: answer.body }]
    : [],
);

describe('token counts', () => {
  it.each(ALL)('of an $name are the provider’s own', async (answer) => {
    expect(await read(answer)).toEqual(answer.usage);
  });

  it.each(ALL)('of an $name do not depend on where its chunks were cut', async (answer) => {
    const { length } = Buffer.from(answer.body as string);
    for (let at = 0; at <= length; at++) expect(await read(answer, at)).toEqual(answer.usage);
  });

  it.each(['\r\n', '\r'])('are read from streams with the line end %j', async (end) => {
    for (const answer of EVENT_STREAMS) {
      const body = answer.body.replace(/\r\n|\n/g, end);
      expect(await read({ ...answer, body })).toEqual(answer.usage);
    }
  });

  it('are read from streams with comments, retries, ids, a byte order mark and no blank line at the end', async () => {
    for (const answer of EVENT_STREAMS) {
      const noisy = answer.body.replace(/^data/gm, ': keep-alive\nid: 7\nretry: soon\nunknown\ndata');
      expect(await read({ ...answer, body: `\ufeff: hello\n\n${noisy}` })).toEqual(answer.usage);
      expect(await read({ ...answer, body: answer.body.trimEnd() })).toEqual(answer.usage);
    }
  });

  it('are read behind a long text full of quotes', async () => {
    for (let length = 0; length < 200; length++) {
      const content = 'x'.repeat(length) + '\\"'.repeat(length) + '"\\';
      const body = JSON.stringify({ model: 'm', content, usage: CHAT_USAGE });
      expect(await read({ body })).toEqual(usage('m', 1117, 46, 1024, 12));
    }
  });

  it('are read where an event’s data has several lines', async () => {
    const lines = JSON.stringify({ model: 'm', choices: [], usage: CHAT_USAGE }, null, 2);
    const body = `data: ${lines.replaceAll('\n', '\ndata:')}\n\n`;
    expect(await read({ contentType: 'text/event-stream', body })).toEqual(usage('m', 1117, 46, 1024, 12));
  });

  it('of an Anthropic stream without its last delta: the output of message_start is not the response’s', async () => {
    const answer = { endpoint: '/v1/messages', contentType: 'text/event-stream', body: messageStream() };
    expect(await read(answer)).toEqual(
      usage('claude-sonnet-4-5-20250929', 2173, null, 2048, null, { cacheWriteTokens: 100 }),
    );
  });

  it.each([-1, 2_147_483_648, 1e21, 1.5, '5', null, true, [5], { n: 5 }])(
    'are null where they are %j',
    async (value) => {
      const body = JSON.stringify({
        usage: {
          prompt_tokens: value,
          completion_tokens: 2_147_483_647,
          prompt_tokens_details: { cached_tokens: value },
          completion_tokens_details: value,
        },
      });
      expect(await read({ body })).toEqual(usage(null, null, 2_147_483_647));
    },
  );

  it.each([
    '{"choices":[{"usage":{"prompt_tokens":5},"model":"x"}]}',
    '{"choices":[],"x":{"usage":{"prompt_tokens":5}}}',
    '{"choices":[{"message":{"content":"\\"usage\\":{\\"prompt_tokens\\":5}"}}]}',
    '{"usage":[{"prompt_tokens":5}]}',
    '{"usage":"5"}',
    '"usage"',
    '{"usage":{"prompt_tokens":5',
    '{"usage":{"prompt_tokens":5}}{"usage":{"prompt_tokens":6}}',
    '',
  ])('are not taken from %s', async (body) => {
    expect(await read({ body })).toEqual(NO_USAGE);
  });

  it.each([
    '/v1/responses/resp_1',
    '/v1/batches/batch_1',
    '/v1/threads/thread_1/runs',
    '/v1/messages/count_tokens',
    '/v1/files/file-1/content',
    '/v1/models',
  ])('are not taken from %s, whose counts are of other calls', async (endpoint) => {
    expect(
      await read({ endpoint, body: '{"model":"m","input_tokens":5,"usage":{"input_tokens":5}}' }),
    ).toEqual(NO_USAGE);
  });

  it.each([null, 'text/plain', 'application/octet-stream', 'audio/mpeg', 'application/jsonl'])(
    'are not taken from %s',
    async (contentType) => {
      expect(await read({ contentType, body: '{"usage":{"prompt_tokens":5}}' })).toEqual(NO_USAGE);
    },
  );
});

describe('a stream of events', () => {
  it.each([
    ['text/event-stream', true],
    ['Text/Event-Stream; charset=utf-8', true],
    ['text/event-stream ;x', true],
    ['text/event-streams', false],
    ['application/vnd.amazon.eventstream', true],
    ['application/x-ndjson; charset=utf-8', true],
    ['application/stream+json', true],
    ['application/vndXamazon.eventstream', false],
    ['application/json', false],
    ['application/json; was=text/event-stream', false],
    ['', false],
    [null, false],
    [undefined, false],
  ])('%s: %s', (contentType, streamed) => {
    expect(isStreamed(contentType)).toBe(streamed);
  });
});
