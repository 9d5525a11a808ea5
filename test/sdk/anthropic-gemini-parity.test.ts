import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { PROVIDER_KEY, startTestGateway, type TestGateway } from '../support/gateway.js';
import { collect, hear } from './both-ways.js';
import { type StandIn, startStandIn } from './stand-in.js';

describe('anthropic', () => {
  let standIn: StandIn;
  let gateway: TestGateway;

  beforeAll(async () => {
    standIn = await startStandIn();
    gateway = await startTestGateway({ PROVIDER_URL: standIn.url, PROVIDER_AUTH: 'x-api-key' });
  });
  afterAll(async () => {
    await gateway.stop();
    await standIn.stop();
  });

  /** Both ways in which the SDK sends a credential. */
  const credentials = {
    'x-api-key': (key: string) => ({ apiKey: key, authToken: null }),
    bearer: (key: string) => ({ apiKey: null, authToken: key }),
  };
  let credential: keyof typeof credentials = 'x-api-key';

  async function same<T>(use: (client: Anthropic) => Promise<T>): Promise<T> {
    const client = (baseURL: string, key: string) => (fetch: typeof globalThis.fetch) =>
      use(new Anthropic({ baseURL, ...credentials[credential](key), maxRetries: 0, fetch }));
    const direct = await hear(client(standIn.url, PROVIDER_KEY));
    const through = await hear(client(gateway.url, gateway.key));
    expect(through).toStrictEqual(direct);
    expect(through.error).toBeUndefined();
    expect(through.answers.map(({ body }) => body.length)).not.toContain(0);
    return through.value as T;
  }

  const request = (content: string) => ({
    model: 'claude-next',
    max_tokens: 64,
    messages: [{ role: 'user' as const, content }],
  });
  const tools = [
    {
      name: 'get_weather',
      input_schema: { type: 'object' as const, properties: { city: { type: 'string' } } },
    },
  ];

  describe.each(Object.keys(credentials) as (keyof typeof credentials)[])('with the key as %s', (way) => {
    beforeAll(() => {
      credential = way;
    });

    it('messages', async () => {
      const answer = await same((client) => client.messages.create(request('hello')));
      expect(answer.content[0]).toMatchObject({
        type: 'text',
        text: expect.stringContaining('👋') as string,
      });
    });

    it('streamed messages, event by event', async () => {
      const events = await same(async (client) =>
        collect(await client.messages.create({ ...request('hello'), stream: true })),
      );
      expect(events[0]!.type).toBe('message_start');
      expect(events.at(-1)!.type).toBe('message_stop');
      expect(events.length).toBeGreaterThan(8);
    });

    it('tools, thinking and the SDK’s own stream helper', async () => {
      const message = await same((client) =>
        client.messages.stream({ ...request('weather'), tools }).finalMessage(),
      );
      expect(message.content).toMatchObject([
        { type: 'text' },
        { type: 'tool_use', id: 'call_paris', input: { city: 'Paris', unit: 'c' } },
        { type: 'tool_use', id: 'call_oslo', input: { city: 'Oslo' } },
      ]);
      const thought = await same((client) => client.messages.create(request('think')));
      expect(thought.content.map(({ type }) => type)).toEqual(['thinking', 'text']);
    });

    it('beta messages, with a query and an anthropic-beta header', async () => {
      const answer = await same((client) =>
        client.beta.messages.create({ ...request('hello'), betas: ['context-1m-2025-08-07'] }),
      );
      expect(answer.role).toBe('assistant');
    });

    it('count_tokens', async () => {
      const answer = await same((client) => {
        const { model, messages } = request('hello');
        return client.messages.countTokens({ model, messages });
      });
      expect(answer).toMatchObject({ input_tokens: 2095 });
    });
  });
});

describe('gemini', () => {
  let standIn: StandIn;
  let gateway: TestGateway;

  beforeAll(async () => {
    standIn = await startStandIn();
    gateway = await startTestGateway({ PROVIDER_URL: standIn.url, PROVIDER_AUTH: 'x-goog-api-key' });
  });
  afterAll(async () => {
    await gateway.stop();
    await standIn.stop();
  });

  const MODEL = '/v1beta/models/gemini-2.0-flash';

  /** The body's text of a call as Google's own clients make it. */
  async function same(path: string, body: object): Promise<string> {
    const call = (url: string, key: string) =>
      hear(async (fetch) => {
        const headers = { 'content-type': 'application/json', 'x-goog-api-key': key };
        const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
        return response.text();
      });
    const direct = await call(standIn.url, PROVIDER_KEY);
    const through = await call(`${gateway.url}/p/default`, gateway.key);
    expect(through).toStrictEqual(direct);
    expect(through.answers[0]!.status).toBe(200);
    return through.value as string;
  }

  const contents = [{ role: 'user', parts: [{ text: 'hello' }] }];

  it('generateContent', async () => {
    expect(await same(`${MODEL}:generateContent`, { contents })).toContain('"finishReason":"STOP"');
  });

  it('streamGenerateContent, as events', async () => {
    const text = await same(`${MODEL}:streamGenerateContent?alt=sse`, { contents });
    expect(text.split('\n\n').length).toBeGreaterThan(8);
  });

  it('embedContent', async () => {
    const body = { content: { parts: [{ text: 'embed me' }] } };
    expect(await same('/v1beta/models/text-embedding-004:embedContent', body)).toContain('"values"');
  });

  it('the OpenAI SDK on the path that Google keeps for it', async () => {
    // The stand-in knows the API but not this path: it is enough that both paths give the same response.
    const call = (url: string, apiKey: string) =>
      hear((fetch) =>
        new OpenAI({ baseURL: `${url}/v1beta/openai`, apiKey, maxRetries: 0, fetch }).chat.completions.create(
          {
            model: 'gemini-2.0-flash',
            messages: [{ role: 'user', content: 'hello' }],
          },
        ),
      );
    const direct = await call(standIn.url, PROVIDER_KEY);
    expect(await call(`${gateway.url}/p/default`, gateway.key)).toStrictEqual(direct);
    expect(direct.answers).toHaveLength(1);
  });
});
