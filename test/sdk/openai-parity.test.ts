import OpenAI, { toFile } from 'openai';
import { PROVIDER_KEY, startTestGateway, type TestGateway } from '../support/gateway.js';
import { collect, hear } from './both-ways.js';
import { type StandIn, startStandIn } from './stand-in.js';

let standIn: StandIn;
let gateway: TestGateway;
let keyForAll: string;

beforeAll(async () => {
  standIn = await startStandIn();
  gateway = await startTestGateway({ PROVIDER_URL: standIn.url });
  keyForAll = await gateway.createKey({ endpoints: 'all' });
});
afterAll(async () => {
  await gateway.stop();
  await standIn.stop();
});

/** Uses the SDK directly and through the gateway, and returns what it returned once that was found to be the same. */
async function same<T>(use: (client: OpenAI) => Promise<T>, key = gateway.key): Promise<T> {
  const client = (url: string, apiKey: string) => (fetch: typeof globalThis.fetch) =>
    use(new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0, fetch }));
  const direct = await hear(client(standIn.url, PROVIDER_KEY));
  const through = await hear(client(gateway.url, key));
  expect(through).toStrictEqual(direct);
  expect(through.error).toBeUndefined();
  expect(through.answers.map(({ body }) => body.length)).not.toContain(0);
  return through.value as T;
}

const messages = (content: string) => [{ role: 'user' as const, content }];
const model = 'gpt-4o';
const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'get_weather',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
    },
  },
];

it('chat', async () => {
  const answer = await same((client) =>
    client.chat.completions.create({ model, messages: messages('hello') }),
  );
  expect(answer.choices[0]!.message.content).toContain('Voilà: 你好 👋');
  expect(answer._request_id).toMatch(/^req-/);
});

it('streamed chat, event by event, with usage', async () => {
  const events = await same(async (client) =>
    collect(
      await client.chat.completions.create({
        model,
        messages: messages('hello'),
        stream: true,
        stream_options: { include_usage: true },
      }),
    ),
  );
  expect(events.length).toBeGreaterThan(8);
  expect(events.at(-1)!.usage).toMatchObject({ total_tokens: expect.any(Number) as number });
});

it('tool calls, whole and streamed', async () => {
  const request = { model, tools, messages: messages('weather') };
  const answer = await same((client) => client.chat.completions.create(request));
  expect(answer.choices[0]!.message.tool_calls).toHaveLength(2);
  const streamed = await same((client) => client.chat.completions.stream(request).finalChatCompletion());
  expect(streamed.choices[0]!.message.tool_calls).toMatchObject([
    { id: 'call_paris', function: { name: 'get_weather', arguments: '{"city":"Paris","unit":"c"}' } },
    { id: 'call_oslo', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } },
  ]);
});

it('responses, whole and streamed', async () => {
  const answer = await same((client) => client.responses.create({ model, input: 'hello' }));
  expect(answer.output_text).toContain('👋');
  const events = await same(async (client) =>
    collect(await client.responses.create({ model, input: 'weather', stream: true })),
  );
  expect(events.map(({ type }) => type)).toEqual(
    expect.arrayContaining([
      'response.created',
      'response.function_call_arguments.done',
      'response.completed',
    ]),
  );
});

it.each(['float', 'base64', undefined] as const)('embeddings, encoded as %s', async (encoding_format) => {
  const answer = await same((client) =>
    client.embeddings.create({ model: 'text-embedding-3-small', input: 'embed me', encoding_format }),
  );
  expect(answer.data[0]!.embedding.length).toBeGreaterThan(0);
});

it('models', async () => {
  expect((await same(async (client) => (await client.models.list()).data)).length).toBeGreaterThan(1);
  expect(await same((client) => client.models.retrieve('gpt-4o'))).toMatchObject({ id: 'gpt-4o' });
});

it('moderations', async () => {
  const answer = await same((client) => client.moderations.create({ input: 'bad words' }));
  expect(answer.results[0]!.flagged).toBe(true);
});

it('speech, a binary response', async () => {
  const bytes = await same(async (client) => {
    const answer = await client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'say it' });
    return Buffer.from(await answer.arrayBuffer());
  });
  expect(bytes).toEqual(Buffer.from(Array.from({ length: 4_096 }, (_, i) => i % 256)));
});

it('transcriptions and translations, multipart requests', async () => {
  const file = () => toFile(Buffer.alloc(70_000, 0xfe), 'a.mp3', { type: 'audio/mpeg' });
  const heard = await same(async (client) =>
    client.audio.transcriptions.create({ model: 'whisper-1', file: await file() }),
  );
  expect(heard.text).toBe('The quick brown fox.');
  const translated = await same(async (client) =>
    client.audio.translations.create({ model: 'whisper-1', file: await file() }),
  );
  expect(translated.text).toBe('Hello, world.');
});

it('images, made and edited', async () => {
  const made = await same((client) => client.images.generate({ model: 'gpt-image-1', prompt: 'a cat' }));
  expect(made.data![0]!.b64_json).toBeDefined();
  const edited = await same(async (client) =>
    client.images.edit({
      model: 'gpt-image-1',
      prompt: 'a cat',
      image: await toFile(Buffer.from('PNG'), 'cat.png', { type: 'image/png' }),
    }),
  );
  expect(edited.data).toHaveLength(1);
});

it('files: uploaded, listed, read and deleted, with a key for all endpoints', async () => {
  const content = Buffer.from('{"custom_id":"é"}\r\n\0\n');
  const seen = await same(async (client) => {
    const made = await client.files.create({ purpose: 'batch', file: await toFile(content, 'batch.jsonl') });
    const listed = (await client.files.list()).data;
    const read = Buffer.from(await (await client.files.content(made.id)).arrayBuffer());
    const deleted = await client.files.delete(made.id);
    return { made, listed, read, deleted };
  }, keyForAll);
  expect(seen.made).toMatchObject({ bytes: content.length, filename: 'batch.jsonl' });
  expect(seen.listed).toHaveLength(1);
  expect(seen.read).toEqual(content);
  expect(seen.deleted.deleted).toBe(true);
});

it('by the path that names the provider', async () => {
  const use = (baseURL: string, apiKey: string) =>
    hear((fetch) =>
      new OpenAI({ baseURL, apiKey, fetch }).chat.completions.create({ model, messages: messages('hello') }),
    );
  const direct = await use(`${standIn.url}/v1`, PROVIDER_KEY);
  expect(await use(`${gateway.url}/p/default/v1`, gateway.key)).toStrictEqual(direct);
  expect(direct.answers[0]!.status).toBe(200);
});
