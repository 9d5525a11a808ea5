import Anthropic from '@anthropic-ai/sdk';
import OpenAI, { AzureOpenAI, toFile } from 'openai';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { answer, chunk, LAST_CHUNK, RawProvider, STREAM_HEAD } from '../support/raw-provider.js';

// What the official SDKs send is certain: a key with rules works with each of their calls.

const JSON_TYPE = ['Content-Type: application/json'];
const MODELS = '{"object":"list","data":[{"id":"gpt-5-mini"},{"id":"gpt-5"}],"has_more":false}';

let provider: RawProvider;
let postern: TestGateway;
let key: string;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ head, body, socket }) => {
    const { bytes } = await body;
    if (head.startsWith('GET /v1/models')) {
      socket.write(answer('200 OK', JSON_TYPE, MODELS));
    } else if (/"stream": ?true/.test(bytes.toString('latin1'))) {
      socket.write(STREAM_HEAD);
      socket.write(chunk('data: {"choices":[]}\n\n'));
      socket.write(chunk('data: [DONE]\n\n'));
      socket.write(LAST_CHUNK);
    } else {
      socket.write(answer('200 OK', JSON_TYPE, '{"ok":true}'));
    }
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
  key = await postern.createKey({ models: ['*-mini'], stream_usage: 'require', endpoints: 'all' });
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

const openai = () => new OpenAI({ baseURL: `${postern.url}/v1`, apiKey: key, maxRetries: 2 });
const anthropic = () => new Anthropic({ baseURL: postern.url, apiKey: key, maxRetries: 2 });
const model = 'gpt-5-mini';
const messages = [{ role: 'user' as const, content: 'Grüße "model": "gpt-5" \u0001 🙂' }];
const sound = () => toFile(Buffer.from('--boundary\r\nsound'), 'a "b".mp3', { type: 'audio/mpeg' });
const picture = () => toFile(Buffer.alloc(500_000, 7), 'picture.png', { type: 'image/png' });

never.each<[string, () => Promise<unknown>]>([
  ['chat.completions', () => openai().chat.completions.create({ model, messages })],
  [
    'a large chat.completions',
    () =>
      openai().chat.completions.create({
        messages: [{ role: 'user', content: 'é'.repeat(3_000_000) }],
        model,
      }),
  ],
  [
    'a streamed chat.completions',
    async () => {
      const options = { stream: true, stream_options: { include_usage: true } } as const;
      const stream = await openai().chat.completions.create({ model, messages, ...options });
      for await (const _ of stream);
    },
  ],
  ['responses', () => openai().responses.create({ model, input: 'x' })],
  ['embeddings', () => openai().embeddings.create({ model, input: [1, 2, 3] })],
  ['audio.transcriptions', async () => openai().audio.transcriptions.create({ file: await sound(), model })],
  [
    'images.edit',
    async () => openai().images.edit({ image: [await picture(), await picture()], prompt: 'x', model }),
  ],
  ['images.generate', () => openai().images.generate({ prompt: 'x', model })],
  ['audio.speech', () => openai().audio.speech.create({ model, voice: 'alloy', input: 'x' })],
  [
    'Azure deployments',
    () =>
      new AzureOpenAI({
        baseURL: `${postern.url}/p/default/openai/deployments/${model}`,
        apiKey: key,
        apiVersion: '2024-10-21',
      }).chat.completions.create({ model: 'ignored', messages }),
  ],
  ['messages', () => anthropic().messages.create({ model: 'haiku-mini', max_tokens: 9, messages })],
  [
    'a streamed messages',
    async () => {
      const request = { model: 'haiku-mini', max_tokens: 9, messages, stream: true } as const;
      const stream = await anthropic().messages.create(request);
      for await (const _ of stream);
    },
  ],
  ['messages.countTokens', () => anthropic().messages.countTokens({ model: 'haiku-mini', messages })],
  ['models.retrieve', () => openai().models.retrieve(model)],
])('forwards %s', async (_, call) => {
  const before = provider.requests.length;
  await call();
  expect(provider.requests).toHaveLength(before + 1);
});

never('lists the models that the key may use, for both SDKs', async () => {
  expect((await openai().models.list()).data).toEqual([{ id: model }]);
  const listed = [];
  for await (const { id } of anthropic().models.list()) listed.push(id);
  expect(listed).toEqual([model]);
});

it('raises the right error of each SDK, which is not retried', async () => {
  const before = provider.requests.length;
  let attempts = 0;
  const counting: typeof fetch = (...args) => {
    attempts++;
    return fetch(...args);
  };
  const fromOpenai = await openai()
    .withOptions({ fetch: counting })
    .chat.completions.create({ model: 'gpt-5', messages })
    .catch((error: unknown) => error);
  expect(fromOpenai).toBeInstanceOf(OpenAI.PermissionDeniedError);
  expect(fromOpenai).toMatchObject({ status: 403, code: 'model_not_allowed', type: 'permission_error' });
  const streamed = await openai()
    .withOptions({ fetch: counting })
    .chat.completions.create({ model, messages, stream: true })
    .catch((error: unknown) => error);
  expect(streamed).toBeInstanceOf(OpenAI.BadRequestError);
  expect(streamed).toMatchObject({ status: 400, code: 'usage_required' });
  const fromAnthropic = await anthropic()
    .withOptions({ fetch: counting })
    .messages.create({ model: 'opus', max_tokens: 9, messages })
    .catch((error: unknown) => error);
  expect(fromAnthropic).toBeInstanceOf(Anthropic.PermissionDeniedError);
  expect((fromAnthropic as InstanceType<typeof Anthropic.APIError>).error).toMatchObject({
    type: 'error',
    error: { type: 'permission_error' },
  });
  const unnamed = await anthropic()
    .withOptions({ fetch: counting })
    .post('/v1/messages', { body: { max_tokens: 9 } })
    .catch((error: unknown) => error);
  expect(unnamed).toBeInstanceOf(Anthropic.BadRequestError);
  expect(attempts).toBe(4);
  expect(provider.requests).toHaveLength(before);
});
