import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';

let provider: RawProvider;
let gateway: TestGateway;
/** Statuses with which the next calls fail. */
let failures: string[] = [];
beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    const body = JSON.stringify({ id: 'one', choices: [], content: [] });
    req.socket.write(answer(failures.shift() ?? '200 OK', ['Content-Type: application/json'], body));
  });
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

const messages = [{ role: 'user' as const, content: 'hello' }];
/** As another version of the SDK in another runtime sends them. */
const OTHER_VERSION = {
  'user-agent': 'Other/9.9.9',
  'x-stainless-package-version': '9.9.9',
  'x-stainless-runtime': 'other',
};

it.each([
  [
    'openai',
    (apiKey: string, defaultHeaders: Record<string, string>) =>
      new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, defaultHeaders }).chat.completions
        .create({ model: 'm', messages })
        .withResponse(),
  ],
  [
    'anthropic',
    (apiKey: string, defaultHeaders: Record<string, string>) =>
      new Anthropic({ apiKey, baseURL: gateway.url, defaultHeaders }).messages
        .create({ model: 'm', max_tokens: 1, messages })
        .withResponse(),
  ],
])(
  'a call of the %s SDK gets the stored response of a retried one, also of another version',
  async (_, ask) => {
    const cache = { ttl_seconds: 600, shared: 'team' };
    const keys = [await gateway.createKey({ cache }), await gateway.createKey({ cache })];
    failures = ['500 Internal Server Error'];
    provider.requests.length = 0;
    await ask(keys[0]!, {});
    const retried = provider.requests.map(({ headers }) =>
      headers.find(([name]) => name.toLowerCase() === 'x-stainless-retry-count'),
    );
    expect(retried.map((header) => header?.[1])).toEqual(['0', '1']);
    await eventually(async () => (await ask(keys[0]!, {})).response.headers.get('x-gateway-cache') === 'hit');
    const { response } = await ask(keys[1]!, OTHER_VERSION);
    expect(response.headers.get('x-gateway-cache')).toBe('hit');
  },
);
