import { NO_USAGE, type ResponseUsage } from '../../src/tokens/token-usage.js';
import { read } from './read.js';
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
      usage(null, 50, 60),
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
      expect(await read({ endpoint, contentType: SSE, body: text })).toEqual(expected);
      for (const short of [text.slice(0, -end.length), text.trimEnd()]) {
        expect(await read({ endpoint, contentType: SSE, body: short })).toEqual(expected);
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

it('an empty response has none', async () => {
  expect(await read({ body: '', contentType: SSE })).toEqual(NO_USAGE);
});
