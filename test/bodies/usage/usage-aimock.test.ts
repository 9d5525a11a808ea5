import { LLMock } from '@copilotkit/aimock';
import { copyFor, readUsage } from '../../../src/bodies/usage/usage-reader.js';
import { usage } from './recorded-responses.js';

let provider: LLMock;
const messages = [{ role: 'user', content: 'What is a postern?' }];
const contents = [{ role: 'user', parts: [{ text: 'What is a postern?' }] }];
const [chat, responses, anthropic] = ['/v1/chat/completions', '/v1/responses', '/v1/messages'];
const gemini = '/v1beta/models/gemini-2.0-flash';

beforeAll(async () => {
  provider = new LLMock({ port: 0, host: '127.0.0.1' });
  provider.onMessage('What is a postern?', {
    content: 'A small gate at the back of a castle. 🙂',
    usage: {
      prompt_tokens: 17,
      completion_tokens: 23,
      total_tokens: 40,
      input_tokens: 17,
      output_tokens: 23,
    },
  });
  await provider.start();
});
afterAll(() => provider.stop());

describe('token counts of a stand-in provider’s responses over HTTP', () => {
  it.each<[string, object, string]>([
    [chat, { model: 'gpt-4o', messages }, 'gpt-4o'],
    [chat, { model: 'gpt-4o', messages, stream: true, stream_options: { include_usage: true } }, 'gpt-4o'],
    [responses, { model: 'gpt-4o', input: messages }, 'gpt-4o'],
    [responses, { model: 'gpt-4o', input: messages, stream: true }, 'gpt-4o'],
    [anthropic, { model: 'claude-sonnet-4-5', max_tokens: 99, messages }, 'claude-sonnet-4-5'],
    [anthropic, { model: 'claude-sonnet-4-5', max_tokens: 99, messages, stream: true }, 'claude-sonnet-4-5'],
    [`${gemini}:generateContent`, { contents }, 'gemini-2.0-flash'],
    [`${gemini}:streamGenerateContent`, { contents }, 'gemini-2.0-flash'],
  ])('%s %j', async (endpoint, body, model) => {
    const answer = await fetch(provider.url + endpoint, { method: 'POST', body: JSON.stringify(body) });
    expect(answer.status).toBe(200);
    const type = answer.headers.get('content-type');
    const copy = copyFor(type, answer.headers.get('content-encoding'), endpoint);
    for await (const chunk of answer.body!) copy?.add(Buffer.from(chunk as Uint8Array));
    const { closing, ...found } = await readUsage(type, endpoint, copy);
    expect(closing).toBeDefined();
    expect(found).toMatchObject({ promptTokens: 17, completionTokens: 23 });
    expect(found).toEqual(
      usage(found.model, 17, 23, found.cachedTokens, found.reasoningTokens, {
        cacheWriteTokens: found.cacheWriteTokens,
      }),
    );
    expect([model, null]).toContain(found.model);
  });
});
