import Anthropic from '@anthropic-ai/sdk';
import OpenAI, { toFile } from 'openai';
import { deferred } from '../support/deferred.js';
import { PROVIDER_KEY, startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, chunk, RawProvider } from '../support/raw-provider.js';
import { hear, type Heard } from './both-ways.js';
import { type StandIn, startStandIn } from './stand-in.js';

describe('provider errors', () => {
  let standIn: StandIn;
  let provider: RawProvider;
  let gateway: TestGateway;
  let rawGateway: TestGateway;

  beforeAll(async () => {
    standIn = await startStandIn();
    provider = await RawProvider.start(() => {});
    gateway = await startTestGateway({ PROVIDER_URL: standIn.url });
    rawGateway = await startTestGateway({ PROVIDER_URL: provider.url });
  });
  afterAll(async () => {
    await gateway.stop();
    await rawGateway.stop();
    await standIn.stop();
    await provider.stop();
  });

  type Use = (url: string, apiKey: string, fetch: typeof globalThis.fetch) => Promise<unknown>;

  /** What an SDK throws, once it was found to be the same directly and through the gateway. */
  async function sameError(use: Use, [to, via] = [standIn.url, gateway]): Promise<Heard> {
    const direct = await hear((fetch) => use(to, PROVIDER_KEY, fetch));
    const through = await hear((fetch) => use(via.url, via.key, fetch));
    expect(through).toStrictEqual(direct);
    expect(through.error).toBeDefined();
    return through;
  }

  const message = (content: string) => ({ model: 'm', messages: [{ role: 'user' as const, content }] });
  const openai =
    (content: string, maxRetries = 0): Use =>
    (url, apiKey, fetch) =>
      new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries, fetch }).chat.completions.create(
        message(content),
      );
  const anthropic =
    (content: string, maxRetries = 0): Use =>
    (baseURL, apiKey, fetch) =>
      new Anthropic({ baseURL, apiKey, authToken: null, maxRetries, fetch }).messages.create({
        ...message(content),
        max_tokens: 9,
      });

  it.each([
    [400, 'BadRequestError', 'unsupported_value'],
    [401, 'AuthenticationError', 'invalid_api_key'],
    [403, 'PermissionDeniedError', 'unsupported_country'],
    [404, 'NotFoundError', 'model_not_found'],
    [409, 'ConflictError', 'conflict'],
    [422, 'UnprocessableEntityError', 'unprocessable'],
    [429, 'RateLimitError', 'rate_limit_exceeded'],
    [500, 'InternalServerError', null],
    [503, 'InternalServerError', 'overloaded'],
  ])("a provider's %i reaches both SDKs as it is", async (status, name, code) => {
    const { error } = await sameError(openai(`err${status}`));
    expect(error).toMatchObject({ class: name, status, code, requestID: 'req-WlpaWlpaWlpaWlpa' });
    const { error: other } = await sameError(anthropic(`err${status}`));
    expect(other).toMatchObject({ status, error: { type: 'error' } });
    for (const { headers } of [error, other] as { headers: [string, string][] }[]) {
      expect(headers.map(([header]) => header)).not.toContain('x-gateway-error');
      if (status === 429) expect(headers).toContainEqual(['retry-after', '7']);
    }
  });

  it('an error without a JSON body', async () => {
    provider.script = async (req) => {
      await req.body;
      req.socket.write(answer('502 Bad Gateway', ['Content-Type: text/html'], '<html>nginx</html>'));
    };
    const { error } = await sameError(openai('x'), [provider.url, rawGateway]);
    expect(error).toMatchObject({ class: 'InternalServerError', status: 502 });
  });

  it("a provider's own word on retrying is obeyed through the gateway", async () => {
    let count = 0;
    provider.script = async (req) => {
      await req.body;
      const headers = ['Content-Type: application/json', 'retry-after-ms: 1'];
      const again = ++count % 3 !== 0;
      req.socket.write(
        answer('429 Too Many Requests', [...headers, `x-should-retry: ${again}`], '{"error":{}}'),
      );
    };
    for (const use of [openai('x', 5), anthropic('x', 5)]) {
      const before = provider.requests.length;
      const { answers } = await sameError(use, [provider.url, rawGateway]);
      expect(answers).toHaveLength(3);
      expect(provider.requests.length - before).toBe(6);
    }
  });

  /** The provider goes on only after the application has confirmed each event, then breaks off. */
  it.each(['in the middle of an event', 'between two events'])('a stream cut %s', async (where) => {
    const use: Use = async (url, apiKey, fetch) => {
      const confirmed = [deferred(), deferred()];
      provider.script = async (req) => {
        await req.body;
        req.socket.write(
          'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n',
        );
        for (const [i, step] of confirmed.entries()) {
          req.socket.write(chunk(`data: {"choices":[{"index":0,"delta":{"content":"${i}"}}]}\n\n`));
          await step.promise;
        }
        if (where === 'between two events') req.socket.destroy();
        else req.socket.end(chunk('data: {"choices":[{"ind'));
      };
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 2, fetch });
      const stream = await client.chat.completions.create({ ...message('x'), stream: true });
      const seen: string[] = [];
      try {
        for await (const event of stream) {
          seen.push(event.choices[0]!.delta.content!);
          confirmed[seen.length - 1]!.resolve();
        }
      } finally {
        expect(seen).toEqual(['0', '1']);
      }
    };
    const before = provider.requests.length;
    const direct = await hear((fetch) => use(provider.url, PROVIDER_KEY, fetch));
    const through = await hear((fetch) => use(rawGateway.url, rawGateway.key, fetch));
    expect(through.error).toMatchObject({ class: 'TypeError', message: 'terminated' });
    expect(direct.error).toMatchObject({ class: 'TypeError', message: 'terminated' });
    // A stream that has begun is never asked for again.
    expect(provider.requests.length - before).toBe(2);
    // How much of the cut event fetch hands on before it reports the break depends on timing, not on the gateway.
    expect(through.answers[0]!.body).toContain('"content":"1"');
  });
});

describe('request headers', () => {
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
});
