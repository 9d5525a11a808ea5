import OpenAI from 'openai';
import { PROVIDER_KEY, startTestGateway, type TestGateway } from '../support/gateway.js';
import { hear } from './both-ways.js';
import { type StandIn, startStandIn } from './stand-in.js';

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
  // The stand-in knows the API but not this path: it is enough that both roads lead to the same answer.
  const call = (url: string, apiKey: string) =>
    hear((fetch) =>
      new OpenAI({ baseURL: `${url}/v1beta/openai`, apiKey, maxRetries: 0, fetch }).chat.completions.create({
        model: 'gemini-2.0-flash',
        messages: [{ role: 'user', content: 'hello' }],
      }),
    );
  const direct = await call(standIn.url, PROVIDER_KEY);
  expect(await call(`${gateway.url}/p/default`, gateway.key)).toStrictEqual(direct);
  expect(direct.answers).toHaveLength(1);
});
