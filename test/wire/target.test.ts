import { startTestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

describe('carried', () => {
  /** Targets that are odd but safe: the provider gets each byte for byte. */
  never.each([
    '/v1/',
    '/v1//',
    '/v1//models//x/',
    '/v1/models/',
    '/v1/MODELS',
    '/v1/models/meta-llama%2FLlama-3.3-70B',
    '/v1/models/org%2fmodel%2Fname',
    '/v1/models/a%5Cb',
    '/v1/models/ft:gpt-4o:org::id',
    '/v1/models/...',
    '/v1/models/..x',
    '/v1/models/x..',
    '/v1/models/.hidden',
    '/v1/models/v1.5/..5',
    '/v1/models/a;b=c',
    '/v1/models/%e4%BD%A0',
    '/v1/models/%ff%FE',
    '/v1/models/%20%23%3F%25',
    '/v1/models/%252F',
    '/v1/models/%25%32%35',
    '/v1/models/user@host:80',
    "/v1/models/!$&'()*+,=~_-",
    '/v1/models/"<>^`{|}[]',
    '/v1/models?',
    '/v1/models??',
    '/v1/models?a=b&a=c&&=',
    '/v1/models?path=/../../etc/passwd',
    '/v1/models?path=%2e%2e%2f',
    '/v1/models?malformed=%zz&half=%4&end=%',
    '/v1/models?nul=%00&line=%0d%0a',
    '/v1/models?url=http://evil.test//x',
    '/v1/models?{"a":[1]}|^`',
    '/v1/models?a+b=c%20d',
  ])('carries %s byte for byte', async (target) => {
    const [reply] = await wire.send(request(`GET ${target}`, [wire.auth]));
    expect([reply!.status, reply!.header('x-target')]).toEqual([200, target]);
    await wire.expectSound(1);
  });

  it.each(['/base', '/base/path', '/a%2Fb'])('keeps the path of a provider at %s before it', async (base) => {
    const { url } = wire.provider;
    const based = await startTestGateway({ PROVIDER_URL: `${url}${base}` });
    const client = await RawClient.connect(based.port);
    client.send(request('GET /v1/models?a=b', [`Authorization: Bearer ${based.key}`]));
    expect((await client.answer()).header('x-target')).toBe(`${base}/v1/models?a=b`);
    client.destroy();
    await based.stop();
    await wire.expectSound(1);
  });
});

describe('with credentials in it', () => {
  let wire: Wire;
  let key: string;

  beforeAll(async () => {
    wire = await Wire.start();
    key = wire.gateway.key;
  });
  afterAll(() => wire.stop());

  const everyByte = (text: string) => Buffer.from(text).toString('hex').replace(/../g, '%$&');

  /** A key in a URL is in logs already; it must not go on to the provider's as well. KEY is a good one. */
  never.each([
    ['a query', '/v1/models?key=KEY'],
    ['a name in a query', '/v1/models?KEY=1'],
    ['a query, encoded underscore', '/v1/models?key=ENC1'],
    ['a query, every byte encoded', '/v1/models?key=ENC'],
    ['a query, amid other text', '/v1/models?q=xxKEYxx'],
    ['a path', '/v1/models/KEY'],
    ['a path, encoded', '/v1/models/ENC'],
    ['a path behind a provider', '/p/default/v1/KEY/x'],
    ['the name of a provider', '/p/KEY/v1/models'],
    ['a path outside of /v1', '/KEY'],
    ['a query outside of /v1', '/chat/completions?api_key=KEY'],
    ['a key nobody issued', `/v1/models?key=ptn_${'x'.repeat(38)}`],
    ['access_token', '/v1/models?access_token=x'],
    ['an empty access_token', '/v1/models?access_token'],
    ['access_token among others', '/v1/models?a=b&access_token=x&c'],
    ['access_token behind a semicolon', '/v1/models?a=b;access_token=x'],
    ['access_token in upper case', '/v1/models?ACCESS_TOKEN=x'],
    ['access_token, encoded', '/v1/models?access%5Ftoken=x'],
    ['access_token, every byte encoded', `/v1/models?${everyByte('access_token')}=x`],
    ['access_token between blanks', '/v1/models?+access_token%20=x'],
    ['access_token in brackets', '/v1/models?access_token[]=x'],
  ])('rejects a credential in %s', async (_, target) => {
    const filled = target
      .replace('KEY', key)
      .replace('ENC1', key.replace('_', '%5f'))
      .replace('ENC', everyByte(key));
    // With a good key in its place beside it, and without one.
    for (const headers of [[wire.auth], []]) {
      const [reply] = await wire.send(request(`GET ${filled}`, headers));
      wire.expectRejection(reply, 400, 'credential_in_query');
      expect(reply!.body.toString()).not.toContain('ptn_');
    }
    await wire.expectSound(0);
  });

  it.each([
    ['a shown prefix', () => `/v1/models?prefix=${key.slice(0, 12)}`],
    ['the word in a value', () => '/v1/models?q=access_token'],
    ['the word in another name', () => '/v1/models?my_access_token=x'],
    ['the word in the path', () => '/v1/access_token'],
  ])('carries %s', async (_, target) => {
    const [reply] = await wire.send(request(`GET ${target()}`, [wire.auth]));
    expect([reply!.status, reply!.header('x-target')]).toEqual([200, target()]);
    await wire.expectSound(1);
  });
});

describe('the path of a named provider', () => {
  it.each([
    ['/p/default/v1/chat/completions', '/v1/chat/completions'],
    ['/p/default/v1/models?a=b', '/v1/models?a=b'],
    ['/p/default/', '/'],
    ['/p/default/?a=/b', '/?a=/b'],
    ['/p/default/v1/models?x=/p/other/v1', '/v1/models?x=/p/other/v1'],
    ['/p/default/p/default/v1/models', '/p/default/v1/models'],
    ['/p/default/V1BETA/x%2Fy', '/V1BETA/x%2Fy'],
    ['/p/default/admin/v1/keys', '/admin/v1/keys'],
  ])('carries %s as %s', async (target, seen) => {
    const [reply] = await wire.send(request(`GET ${target}`, [wire.auth]));
    expect([reply!.status, reply!.header('x-target')]).toEqual([200, seen]);
    await wire.expectSound(1);
  });

  it.each([
    [404, 'not_found', '/p/default'],
    [404, 'not_found', '/p/default?x=/v1/models'],
    [404, 'not_found', '/p/'],
    [404, 'not_found', '/p'],
    [404, 'not_found', '/P/default/v1/models'],
    [404, 'provider_not_found', '/p//v1/models'],
    [404, 'provider_not_found', '/p//x'],
    [404, 'provider_not_found', '/p/DEFAULT/v1/models'],
    [404, 'provider_not_found', '/p/Default/v1/models'],
    [404, 'provider_not_found', '/p/def%61ult/v1/models'],
    [404, 'provider_not_found', '/p/default%20/v1/models'],
    [404, 'provider_not_found', '/p/default%2fv1/models'],
    [404, 'provider_not_found', '/p/default;x/v1/models'],
    [404, 'provider_not_found', '/p/default@evil.test/v1/models'],
    [404, 'provider_not_found', '/p/default:80/v1/models'],
    [404, 'provider_not_found', '/p/__proto__/v1/models'],
    [404, 'provider_not_found', '/p/constructor/v1/models'],
    [404, 'provider_not_found', `/p/${'x'.repeat(64)}/v1/models`],
    [404, 'provider_not_found', '/p/other/v1/models'],
    [404, 'not_found', '/v1'],
    [404, 'not_found', '/v1?x=/v1/models'],
    [404, 'not_found', '/V1/models'],
    [404, 'not_found', '/v1x/models'],
    [404, 'not_found', '/%76%31/models'],
    [404, 'not_found', '/v1%2fmodels'],
    [404, 'not_found', '/call'],
    [404, 'not_found', '/call?x'],
    [400, 'invalid_path', '/p/..%2f'],
    [400, 'invalid_path', '/p/..%2fdefault/v1/models'],
    [400, 'invalid_path', '/p/default/../admin'],
    [400, 'invalid_path', '/p/default/..'],
    [400, 'invalid_path', '/p/./default/v1/models'],
  ])('answers %i %s to %s', async (status, code, target) => {
    const [reply] = await wire.send(request(`GET ${target}`, [wire.auth]));
    wire.expectRejection(reply, status, code);
    await wire.expectSound(0);
  });
});

describe('key of the caller in it', () => {
  let wire: Wire;
  let key: string;

  beforeAll(async () => {
    wire = await Wire.start();
    key = wire.auth.slice('Authorization: Bearer '.length);
  });
  afterAll(() => wire.stop());

  /** A key that a client put in a second place must not travel on with it. */
  never.each([
    ['User-Agent', 'User-Agent: tool/1.0 KEY'],
    ['Idempotency-Key', 'Idempotency-Key: KEY'],
    ['a header of its own', 'X-Token: KEY'],
    ['a URL', 'Referer: https://app.test/?key=KEY&x'],
    ['a quoted string', 'X-Debug: {"key":"KEY"}'],
    ['amid other letters', 'X-Token: xxKEYxx'],
    ['a name', 'KEY: x'],
    ['a name, with more', 'X-KEY-1: x'],
    ['the second of two', 'X-Fine: KEY'],
  ])('drops a header that holds the key: %s', async (_, header) => {
    const sent = [wire.auth, 'X-Fine: 1', header.replace('KEY', key), 'X-Also-Fine: 2'];
    const [reply] = await wire.send(request('POST /v1/chat/completions', sent, '{}'));
    expect(reply!.status).toBe(200);
    const { head, headers } = wire.provider.requests.at(-1)!;
    expect(head).not.toContain(key);
    expect(headers.map(([name]) => name)).toEqual([
      'host',
      'connection',
      'Authorization',
      'X-Fine',
      'X-Also-Fine',
      'content-length',
    ]);
    const [row] = await wire.gateway.database.query(
      'SELECT 1 FROM request_log WHERE request_log::text LIKE $1',
      [`%${key}%`],
    );
    expect(row).toBeUndefined();
    await wire.expectSound(1);
  });

  it('leaves a key in the body alone: the body is opaque', async () => {
    const reply = await wire.call('POST /v1/chat/completions', [], `{"key":"${key}"}`);
    expect(reply.body.toString()).toBe(`{"key":"${key}"}`);
    await wire.expectSound(1);
  });
});
