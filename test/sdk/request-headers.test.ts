import Anthropic from '@anthropic-ai/sdk';
import OpenAI, { toFile } from 'openai';
import { PROVIDER_KEY, startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';

let provider: RawProvider;
let gateway: TestGateway;
let key: string;

beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', ['Content-Type: application/json'], '{}'));
  });
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
  key = await gateway.createKey({ endpoints: 'all' });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

/** What each hop writes for itself. */
const OF_THIS_HOP = ['host', 'connection', 'content-length', 'transfer-encoding'];

type Use = (url: string, apiKey: string) => Promise<unknown>;

/** The head that the provider got, in order and case; a form's boundary is chance, the credential's line is ours. */
async function headOf(use: Use, url: string, apiKey: string): Promise<string[]> {
  await use(url, apiKey);
  const { head } = provider.requests.at(-1)!;
  return head
    .split('\r\n')
    .filter((line) => !OF_THIS_HOP.includes(line.split(':', 1)[0]!.toLowerCase()))
    .map((line) => line.replace(/(boundary=).*/, '$1…').replace(/^authorization:/i, 'authorization:'));
}

const messages = [{ role: 'user' as const, content: 'x' }];

it.each<[string, Use]>([
  [
    'openai, JSON',
    (url, apiKey) =>
      new OpenAI({
        baseURL: `${url}/v1`,
        apiKey,
        organization: 'org-1',
        project: 'proj_1',
      }).chat.completions.create({ model: 'm', messages }, { idempotencyKey: 'once' }),
  ],
  [
    'openai, a form',
    async (url, apiKey) =>
      new OpenAI({ baseURL: `${url}/v1`, apiKey }).files.create({
        purpose: 'batch',
        file: await toFile(Buffer.from('x'), 'x.jsonl'),
      }),
  ],
  [
    'openai, a query',
    (url, apiKey) => new OpenAI({ baseURL: `${url}/v1`, apiKey }).files.list({ limit: 3, order: 'asc' }),
  ],
  [
    'anthropic, beta',
    (baseURL, authToken) =>
      new Anthropic({ baseURL, authToken, apiKey: null }).beta.messages.create({
        model: 'm',
        max_tokens: 9,
        messages,
        betas: ['context-1m-2025-08-07', 'files-api-2025-04-14'],
      }),
  ],
])('what the SDK says about itself and its request reaches the provider: %s', async (_, use) => {
  const direct = await headOf(use, provider.url, PROVIDER_KEY);
  expect(await headOf(use, gateway.url, key)).toEqual(direct);
  expect(direct.join('\n')).toMatch(/^user-agent: /im);
  expect(direct).toContain(`authorization: Bearer ${PROVIDER_KEY}`);
});
