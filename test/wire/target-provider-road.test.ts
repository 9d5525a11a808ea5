import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

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
  wire.expectRefusal(reply, status, code);
  await wire.expectSound(0);
});
