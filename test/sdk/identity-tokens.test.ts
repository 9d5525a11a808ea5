import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { exchange } from '../identity/exchanges.js';
import { FakeIssuer } from '../identity/fake-issuer.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider, type ReceivedRequest as RawRequest } from '../support/raw-provider.js';

const MESSAGE = JSON.stringify({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-test',
  content: [{ type: 'text', text: 'hello' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 3, output_tokens: 1 },
});

let issuer: FakeIssuer;
let provider: RawProvider;
let gateway: TestGateway;
let requests: RawRequest[];
beforeAll(async () => {
  issuer = await FakeIssuer.start();
  requests = [];
  provider = await RawProvider.start(async (req) => {
    requests.push(req);
    await req.body;
    req.socket.write(answer('200 OK', ['content-type: application/json'], MESSAGE));
  });
  gateway = await startTestGateway({ PROVIDER_URL: provider.url, PROVIDER_AUTH: 'x-api-key' });
  await gateway.admin('POST', '/keys', { team: 'default', name: 'worker', secret: false });
  const claims = { sub: ['job'] };
  const body = { name: 'worker', key: 'default/worker', issuer: issuer.url, audience: 'gateway', claims };
  await gateway.admin('POST', '/trusts', body);
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
  await issuer.stop();
});

const headersOf = ({ headers }: RawRequest, name: string) =>
  headers.filter(([one]) => one.toLowerCase() === name).map(([, value]) => value);

describe("Anthropic's SDK", () => {
  const variables = {
    ANTHROPIC_FEDERATION_RULE_ID: 'worker',
    ANTHROPIC_ORGANIZATION_ID: '00000000-0000-0000-0000-000000000000',
  };
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'postern-identity-'));
    // Nothing of the machine's own.
    for (const name of ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_PROFILE'])
      delete process.env[name];
    process.env.ANTHROPIC_CONFIG_DIR = folder;
    Object.assign(process.env, variables, { ANTHROPIC_IDENTITY_TOKEN_FILE: join(folder, 'token') });
  });
  afterAll(() => {
    for (const name of [...Object.keys(variables), 'ANTHROPIC_IDENTITY_TOKEN_FILE', 'ANTHROPIC_CONFIG_DIR'])
      delete process.env[name];
    rmSync(folder, { recursive: true });
  });

  const call = async (betas?: string[]) => {
    writeFileSync(join(folder, 'token'), await issuer.sign());
    const client = new Anthropic({ baseURL: `${gateway.url}/p/default`, maxRetries: 0 });
    const body = {
      model: 'claude-test',
      max_tokens: 8,
      messages: [{ role: 'user' as const, content: 'hi' }],
    };
    const message = betas
      ? await client.beta.messages.create({ ...body, betas })
      : await client.messages.create(body);
    expect(message.content).toMatchObject([{ type: 'text', text: 'hello' }]);
    return requests.at(-1)!;
  };

  it('exchanges the token of a pod by environment variables alone, and the provider sees no mark of a token', async () => {
    const request = await call();
    expect(headersOf(request, 'x-api-key')).toHaveLength(1);
    expect(headersOf(request, 'authorization')).toEqual([]);
    expect(headersOf(request, 'anthropic-beta')).toEqual([]);
    expect(JSON.stringify(request.headers)).not.toContain('ptn_');
  });

  it('keeps the other values of anthropic-beta', async () => {
    const request = await call(['files-api-2025-04-14']);
    expect(headersOf(request, 'anthropic-beta').join(',')).toBe('files-api-2025-04-14');
  });

  it('keeps the mark in a call with a static key: it may be meant for the provider', async () => {
    const response = await fetch(`${gateway.url}/p/default/v1/messages`, {
      method: 'POST',
      headers: {
        'x-api-key': gateway.key,
        'anthropic-beta': 'oauth-2025-04-20',
        'content-type': 'application/json',
      },
      body: '{}',
    });
    await response.arrayBuffer();
    expect(headersOf(requests.at(-1)!, 'anthropic-beta')).toEqual(['oauth-2025-04-20']);
  });
});

it("OpenAI's SDK gets a token from a function", async () => {
  const client = new OpenAI({
    baseURL: `${gateway.url}/v1`,
    apiKey: async () => (await exchange(gateway, 'worker', await issuer.sign())).token!,
    maxRetries: 0,
  });
  await client.chat.completions.create({ model: 'gpt-test', messages: [{ role: 'user', content: 'hi' }] });
  expect(headersOf(requests.at(-1)!, 'x-api-key')).toHaveLength(1);
});
