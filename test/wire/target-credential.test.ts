import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
let key: string;

beforeAll(async () => {
  wire = await Wire.start();
  key = wire.gateway.key;
});
afterAll(() => wire.stop());

const everyByte = (text: string) => Buffer.from(text).toString('hex').replace(/../g, '%$&');

/** A key in a URL is in logs already; it must not go on to the provider's as well. KEY is a good one. */
it.each([
  ['a query', '/v1/models?key=KEY'],
  ['a name in a query', '/v1/models?KEY=1'],
  ['a query, encoded underscore', '/v1/models?key=ENC1'],
  ['a query, every byte encoded', '/v1/models?key=ENC'],
  ['a query, amid other text', '/v1/models?q=xxKEYxx'],
  ['a path', '/v1/models/KEY'],
  ['a path, encoded', '/v1/models/ENC'],
  ['a path behind a provider', '/p/default/v1/KEY/x'],
  ['the name of a provider', '/p/KEY/v1/models'],
  ['a path off the road', '/KEY'],
  ['a query off the road', '/chat/completions?api_key=KEY'],
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
])('refuses a credential in %s', async (_, target) => {
  const filled = target
    .replace('KEY', key)
    .replace('ENC1', key.replace('_', '%5f'))
    .replace('ENC', everyByte(key));
  // With a good key in its place beside it, and without one.
  for (const headers of [[wire.auth], []]) {
    const [reply] = await wire.send(request(`GET ${filled}`, headers));
    wire.expectRefusal(reply, 400, 'credential_in_query');
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
