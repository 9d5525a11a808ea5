import { NO_USAGE, type ResponseUsage } from '../../../src/bodies/usage/token-usage.js';
import { read } from './read.js';
import { awsChunk, awsMessage } from './recorded-formats.js';
import { CHAT_USAGE, dataStream, GEMINI, messageStream, namedStream, usage } from './recorded-responses.js';

const FIGURES: [number, number, number, number] = [1117, 46, 1024, 12];
const SSE = 'text/event-stream';
const big = (length = 200_000, text = 'x') => text.repeat(length);
const event = (type: string, rest: object) => ({ type, ...rest });

describe('token counts of a JSON response larger than the copy', () => {
  it.each<[string, string, ResponseUsage]>([
    [
      'usage last, model first',
      `{"model":"m","choices":[{"message":{"content":"${big()}"}}],"usage":${JSON.stringify(CHAT_USAGE)}}`,
      usage('m', ...FIGURES),
    ],
    [
      'model last, after vectors',
      `{"data":[{"embedding":[${big(60_000, '0.25,')}0]}],"model":"m","usage":{"prompt_tokens":8}}\n`,
      usage('m', 8),
    ],
    [
      'usage not quite last',
      `{ "model":"m", "output":"${big()}", "usage" : { "input_tokens": 3, "output_tokens": 4 }, "user": null, "metadata": {"a":[1]} }`,
      usage('m', 3, 4),
    ],
    ['usage before the text', `{"model":"m","usage":{"prompt_tokens":8},"text":"${big()}"}`, usage('m', 8)],
    [
      'a text full of it',
      `{"model":"m","text":"${big(20_000, '\\"usage\\":{\\"prompt_tokens\\":5},')}","usage":{"prompt_tokens":8}}`,
      usage('m', 8),
    ],
    [
      'usage in a deeper object only',
      `{"model":"m","text":"${big()}","x":{"usage":{"prompt_tokens":5}}}`,
      usage('m'),
    ],
    [
      'usage in an object of an array',
      `{"text":"${big()}","x":[1,{"usage":{"prompt_tokens":5}}]}`,
      usage(null),
    ],
    ['a broken end', `{"model":"m","text":"${big()}","usage":{"prompt_tokens":5}`, usage('m')],
    ['two documents', `{"model":"m"} {"text":"${big()}","usage":{"prompt_tokens":5}}`, usage('m')],
    [
      'a key that ends like it',
      `{"model":"m","text":"${big()}","x\\"usage":{"prompt_tokens":5}}`,
      usage('m'),
    ],
    ['usage as a text', `{"text":"${big()}","a":["usage",{"prompt_tokens":5}]}`, usage(null)],
    [
      'a Gemini array',
      `[${JSON.stringify(GEMINI[0])},{"text":"${big()}"},${JSON.stringify(GEMINI[1])}\n]`,
      usage('gemini-2.5-flash', 8, 44, 4, 32),
    ],
    [
      'a Gemini array that breaks off: its first figures are not the last',
      `[${JSON.stringify(GEMINI[0])},{"text":"${big()}"},${JSON.stringify(GEMINI[1])}`,
      usage('gemini-2.5-flash'),
    ],
  ])('%s', async (_name, body, expected) => {
    expect(await read({ body })).toEqual(expected);
  });

  it('do not depend on where the end of the copy begins', async () => {
    const end = `","x":{"usage":{"prompt_tokens":1}}}],"usage":${JSON.stringify(CHAT_USAGE)}}`;
    const figures = end.lastIndexOf(',"usage"');
    for (let cut = 0; cut < end.length; cut++) {
      const after = `,"p":"${big(65_536 - end.length + cut - 7)}"}`;
      const body = `{"model":"m","choices":[{"text":"${big()}${end.slice(0, -1)}${after}`;
      expect(await read({ body })).toEqual(cut <= figures ? usage('m', ...FIGURES) : usage('m'));
    }
  });
});

describe('token counts of a stream larger than the copy', () => {
  const texts = Array.from({ length: 2_000 }, (_, i) => ({
    model: 'm',
    choices: [{ delta: { content: `${i} ${big(80)}` } }],
  }));

  it.each<[string, string, string, ResponseUsage]>([
    [
      'OpenAI chat',
      '/v1/chat/completions',
      dataStream(...texts, { model: 'm', choices: [], usage: CHAT_USAGE }),
      usage('m', ...FIGURES),
    ],
    ['OpenAI chat without figures', '/v1/chat/completions', dataStream(...texts), usage('m')],
    [
      'Anthropic',
      '/v1/messages',
      messageStream({ output_tokens: 15 }).replace(
        'event: ping',
        `${namedStream(...texts.map((text) => event('content_block_delta', text)))}event: ping`,
      ),
      usage('claude-sonnet-4-5-20250929', 2173, 15, 2048, null, { cacheWriteTokens: 100 }),
    ],
    [
      'Anthropic, broken off',
      '/v1/messages',
      messageStream().split('event: message_stop')[0]! +
        namedStream(...texts.map((text) => event('x', text))),
      usage('claude-sonnet-4-5-20250929', 2173, null, 2048, null, { cacheWriteTokens: 100 }),
    ],
    [
      'Gemini, broken off: its first figures are not the last',
      '/v1beta/models/gemini-2.5-flash:streamGenerateContent',
      `data: ${JSON.stringify(GEMINI[0])}\n\n${dataStream(...texts)}`,
      usage('gemini-2.5-flash'),
    ],
    [
      'OpenAI responses, whose last event alone is larger',
      '/v1/responses',
      namedStream(
        event('response.created', { response: { model: 'm', usage: null } }),
        event('response.completed', {
          response: {
            model: 'm',
            output: [{ text: big() }],
            usage: { input_tokens: 3, output_tokens: 4, input_tokens_details: { cached_tokens: 1 } },
            user: null,
            metadata: {},
          },
          sequence_number: 9,
        }),
      ),
      usage('m', 3, 4, 1),
    ],
    [
      'OpenAI responses, whose last event has a usage somewhere else',
      '/v1/responses',
      namedStream(
        event('response.completed', { response: { output: [{ text: big(), usage: { input_tokens: 3 } }] } }),
      ),
      usage(null),
    ],
    [
      'OpenAI image in one event',
      '/v1/images/generations',
      namedStream(
        event('image_generation.completed', {
          b64_json: big(),
          usage: { input_tokens: 50, output_tokens: 60 },
        }),
      ),
      usage(null, 50, 60, null, null, { extra: { images: 1 } }),
    ],
    [
      'a large event that is not the last one',
      '/v1/images/generations',
      namedStream(event('x', { b64_json: big(), usage: { input_tokens: 50 } }), event('y', {})),
      usage(null),
    ],
    [
      'a deeper usage in a large last event',
      '/v1/chat/completions',
      dataStream({ model: 'm' }, { text: big(), x: { usage: { prompt_tokens: 5 } } }),
      usage('m'),
    ],
  ])('%s', async (_name, endpoint, body, expected) => {
    for (const end of ['\n', '\r\n', '\r']) {
      const text = body.replaceAll('\n', end);
      for (const one of [text, text.slice(0, -end.length), text.trimEnd()]) {
        expect(await read({ endpoint, contentType: SSE, body: one })).toEqual(expected);
      }
    }
  });

  it.each(['\n', '\r\n'])('are found wherever the end of the copy begins, with %j', async (end) => {
    const last = `data: {"choices":[],"usage":${JSON.stringify(CHAT_USAGE)}}${end}${end}data: [DONE]${end}${end}`;
    const before = `data: {"model":"m"}${end}${end}data: "${big()}"${end}${end}`;
    for (let cut = -12; cut <= last.length; cut++) {
      const comment = `:${big(65_536 - last.length + cut - 1 - 2 * end.length)}${end}${end}`;
      const found = await read({ contentType: SSE, body: before + last + comment });
      // Once the copy begins inside the event, its counts may be gone, but never others.
      expect(found).toEqual(cut <= 0 || found.promptTokens !== null ? usage('m', ...FIGURES) : usage('m'));
    }
  });
});

describe('token counts of other streams larger than the copy', () => {
  const OLLAMA = { endpoint: '/api/generate', contentType: 'application/x-ndjson' };
  const line = (document: object) => `${JSON.stringify(document)}\n`;
  const parts = Array.from({ length: 3_000 }, (_, i) => ({
    model: 'm',
    response: `${i} ${big(40)}`,
    done: false,
  }));

  it.each<[string, object]>([
    ['short', { model: 'm', done: true, prompt_eval_count: 26, eval_count: 290 }],
    [
      'larger than the copy',
      { model: 'm', done: true, context: Array(60_000).fill(17), prompt_eval_count: 26, eval_count: 290 },
    ],
  ])('in lines, the last one %s', async (_name, last) => {
    const body = [...parts, last].map(line).join('');
    for (const text of [body, body.trimEnd(), body.replaceAll('\n', '\r\n')])
      expect(await read({ ...OLLAMA, body: text })).toEqual(usage('m', 26, 290));
    // Of a line that was cut off, only whole members count.
    const short = await read({ ...OLLAMA, body: body.trimEnd().slice(0, -3) });
    expect(short.completionTokens).toBeNull();
  });

  it('in lines without counts', async () => {
    const text = '"prompt_eval_count": 5';
    const body = [...parts, { model: 'm', x: { prompt_eval_count: 5 }, text }].map(line).join('');
    expect(await read({ ...OLLAMA, body })).toEqual(usage('m'));
  });

  const bedrock = (kind: string) => ({
    endpoint: `/model/m/${kind}`,
    contentType: 'application/vnd.amazon.eventstream',
  });
  const deltas = (make: (payload: object) => Buffer) =>
    Array.from({ length: 2_000 }, (_, i) =>
      make({ contentBlockIndex: 0, delta: { text: `${i} ${big(i % 60)}` } }),
    );
  const delta = (payload: object) => awsMessage('contentBlockDelta', payload);

  it('of Bedrock ConverseStream, wherever the end of the copy begins', async () => {
    const usages = { inputTokens: 16, outputTokens: 35, totalTokens: 51 };
    const end = awsMessage('metadata', { usage: usages, metrics: { latencyMs: 1 } });
    const before = Buffer.concat(deltas(delta));
    for (let cut = 0; cut < 200; cut++) {
      const first = awsMessage('messageStart', { p: big(cut) });
      const body = Buffer.concat([first, before, end]);
      expect(await read({ ...bedrock('converse-stream'), body })).toEqual(usage(null, 16, 35));
      // Cut off: the counts are in the last message.
      const short = body.subarray(0, body.length - 1 - (cut % end.length));
      expect(await read({ ...bedrock('converse-stream'), body: short })).toEqual(NO_USAGE);
    }
  });

  it('of Bedrock InvokeModel with Claude: what the first event has, is in the start of the copy', async () => {
    const start = {
      type: 'message_start',
      message: {
        model: 'claude',
        usage: { input_tokens: 3, cache_read_input_tokens: 1_000, output_tokens: 1 },
      },
    };
    const stop = { type: 'message_delta', usage: { output_tokens: 9 } };
    const metrics = { 'amazon-bedrock-invocationMetrics': { inputTokenCount: 3, outputTokenCount: 9 } };
    const body = Buffer.concat([
      awsChunk(start),
      ...deltas(awsChunk),
      awsChunk(stop),
      awsChunk({ type: 'message_stop', ...metrics }),
    ]);
    const answer = { ...bedrock('invoke-with-response-stream'), body };
    expect(await read(answer)).toEqual(usage('claude', 1_003, 9, 1_000));
  });

  it('of Bedrock are not read from a message whose prelude is damaged', async () => {
    const end = awsMessage('metadata', { usage: { inputTokens: 16, outputTokens: 35 } });
    for (let at = 0; at < 12; at++) {
      const broken = Buffer.from(end);
      broken[at]! ^= 0x01;
      expect(await read({ ...bedrock('converse-stream'), body: broken })).toEqual(NO_USAGE);
    }
  });
});

it('an empty response has none', async () => {
  expect(await read({ body: '', contentType: SSE })).toEqual(NO_USAGE);
});
