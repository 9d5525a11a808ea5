import { gzipSync } from 'node:zlib';
import { FakeProvider, type FakeResponse } from '../../src/testing/fake-provider.js';
import { startTestGateway, type LogRowView, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { TlsProvider } from '../support/tls-provider.js';

const QUOTA = {
  error: {
    message: 'You exceeded your current quota, please check your plan.',
    type: 'insufficient_quota',
    param: null,
    code: 'billing_hard_limit_reached',
  },
};

let provider: FakeProvider;
let postern: TestGateway;
beforeAll(async () => {
  provider = await FakeProvider.start();
  postern = await startTestGateway({
    PROVIDER_URL: provider.url,
    UPSTREAM_CONNECT_TIMEOUT_MS: '120000',
  });
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

async function call(
  path = '/v1/chat/completions',
  key = postern.key,
): Promise<{ body: string; row: LogRowView }> {
  const response = await fetch(`${postern.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{"model":"m"}',
  });
  const body = await response.text();
  return { body, row: await postern.row(response.headers.get('x-gateway-request-id')!) };
}

const words = ({ provider_error_type: type, provider_error_code: code }: LogRowView) => [type, code];

describe('what the provider says of a failed call', () => {
  it.each<[string, FakeResponse, string, (string | null)[]]>([
    [
      'JSON',
      { status: 429, json: QUOTA },
      '/v1/chat/completions',
      ['insufficient_quota', 'billing_hard_limit_reached'],
    ],
    [
      'compressed JSON',
      {
        status: 429,
        headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
        body: gzipSync(JSON.stringify(QUOTA)),
      },
      '/v1/chat/completions',
      ['insufficient_quota', 'billing_hard_limit_reached'],
    ],
    [
      'Anthropic',
      { status: 529, json: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } },
      '/v1/messages',
      ['overloaded_error', null],
    ],
    [
      'a stream that fails',
      { sse: [{ choices: [] }, { error: { type: 'server_error', code: null, message: 'x' } }] },
      '/v1/chat/completions',
      ['server_error', null],
    ],
    [
      "Bedrock's header",
      {
        status: 429,
        headers: { 'x-amzn-errortype': 'ThrottlingException:http://internal/' },
        json: { message: 'x' },
      },
      '/p/default/model/m/converse',
      ['ThrottlingException', null],
    ],
    [
      'a response that is no error',
      { json: { error: null, usage: { prompt_tokens: 1 } } },
      '/v1/embeddings',
      [null, null],
    ],
  ])('is in the row: %s', async (_, response, path, expected) => {
    provider.respond(response);
    const key = await postern.createKey({ endpoints: 'all' });
    const { row } = await call(path, key);
    expect(words(row)).toEqual(expected);
    expect(row.error_code).toBeNull();
  });

  never('reaches the client byte for byte', async () => {
    provider.respond({ status: 429, json: QUOTA });
    expect((await call()).body).toBe(JSON.stringify(QUOTA));
  });

  never('is stored only if it is two words, and holds no key', async () => {
    provider.respond({ status: 400, json: { error: { type: 'a sentence', code: postern.key } } });
    const { row } = await call();
    expect(words(row)).toEqual([null, null]);
  });

  it('filters lists, exports and usage, by type and by code, and is in the views', async () => {
    provider.respond({ status: 429, json: { error: { type: 'tokens', code: 'rate_limit_exceeded' } } });
    const { row } = await call();
    const ids = async (filter: string) =>
      (await postern.admin<{ data: { id: string }[] }>('GET', `/requests?${filter}`)).data.map(
        ({ id }) => id,
      );
    expect(await ids('provider_error=rate_limit_exceeded')).toEqual([row.id]);
    expect(await ids('provider_error=tokens')).toEqual([row.id]);
    expect(await ids('provider_error=token')).toEqual([]);
    const usage = await postern.admin<{ data: { calls: number }[] }>(
      'GET',
      '/usage?provider_error=tokens&group_by=team',
    );
    expect(usage.data).toMatchObject([{ calls: 1 }]);
    const seen = await postern.database.query(
      "SELECT errors::int, provider_error_type, error_cause FROM errors_by_key_hour WHERE provider_error_code = 'rate_limit_exceeded'",
    );
    expect(seen).toEqual([{ errors: 1, provider_error_type: 'tokens', error_cause: null }]);
  });
});

describe('why a provider could not be reached', () => {
  it('is in the row: nobody listens', async () => {
    await postern.storeProviders('away');
    const { row } = await call('/p/away/v1/chat/completions');
    expect(row).toMatchObject({
      status: 502,
      error_code: 'upstream_unreachable',
      error_cause: 'ECONNREFUSED',
    });
  });

  it('is in the row: a name that no address belongs to', async () => {
    await postern.admin('POST', '/providers', {
      name: 'nowhere',
      url: 'https://nowhere.invalid',
      secret: null,
    });
    const { row } = await call('/p/nowhere/v1/chat/completions');
    expect(row.error_code).toBe('upstream_unreachable');
    // Which of them depends on the resolver of the machine.
    expect(['ENOTFOUND', 'EAI_AGAIN']).toContain(row.error_cause);
  });

  it('is in the row: a certificate that nobody vouches for', async () => {
    const tls = await TlsProvider.start();
    await postern.admin('POST', '/providers', {
      name: 'untrusted',
      url: `https://127.0.0.1:${tls.port}`,
      secret: null,
    });
    const { row } = await call('/p/untrusted/v1/chat/completions');
    await tls.stop();
    expect(row.error_code).toBe('upstream_unreachable');
    expect(row.error_cause).toBe('UNABLE_TO_VERIFY_LEAF_SIGNATURE');
  });

  it('is absent from the row of a call that did not fail there', async () => {
    provider.respond({ status: 500, json: {} });
    expect((await call()).row).toMatchObject({ error_code: null, error_cause: null });
  });
});
