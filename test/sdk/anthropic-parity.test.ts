import Anthropic from '@anthropic-ai/sdk';
import { PROVIDER_KEY, startTestGateway, type TestGateway } from '../support/gateway.js';
import { collect, hear } from './both-ways.js';
import { type StandIn, startStandIn } from './stand-in.js';

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
    expect(answer.content[0]).toMatchObject({ type: 'text', text: expect.stringContaining('👋') as string });
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
