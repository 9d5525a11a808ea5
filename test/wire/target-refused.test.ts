import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

/** Ways in which a path has left its folder in gateways of this kind, each behind a road that would be forwarded. */
const DOT_SEGMENTS = [
  '..', '.', '%2e%2e', '%2E%2E', '.%2e', '%2e.', '%2e', '%252e%252e', '%252E.', '.%252e', '%25%32%65%25%32%65',
  '..;', '..;x=y', '%2e%2e;', '..%3b', '..%3Bx', '..%253b', '.;', '%2e%3b',
  'x%2f..', '..%2fx', '..%2Fx', 'x%2f..%2fx', '..%5cx', 'x%5c..', '%2e%2e%2f', '%2e%2e%5c', '..%252fx', '..%255cx',
  '%252e%252e%252f', '%2e%252e%2f', 'x%2f.', 'x%5c%2e%2e%2fx', '..%2f..%2f..%2fadmin%2fv1%2fkeys',
  '..%00', '%2e%2e%00x', '.%09.', '%2e%0a%2e', '..%0d', '..%2500',
]; // prettier-ignore

it.each(DOT_SEGMENTS)('refuses the segment %s in every place', async (segment) => {
  for (const target of [
    `/v1/${segment}`,
    `/v1/${segment}/`,
    `/v1/models/${segment}/files`,
    `/v1/${segment}/v1/chat/completions?a=b`,
    `/p/${segment}/v1/models`,
    `/p/default/${segment}/admin`,
    `/p/default/v1/${segment}`,
    `/${segment}/v1/models`,
    `/elsewhere/${segment}/v1/models`,
  ]) {
    const [reply] = await wire.send(request(`GET ${target}`, [wire.auth]));
    wire.expectRefusal(reply, 400, 'invalid_path');
    expect(reply!.header('x-should-retry')).toBe('false');
  }
  await wire.expectSound(0);
});

it.each([
  ['absolute-form', 'http://provider.test/v1/models'],
  ['absolute-form of this host', 'http://gateway.test/v1/models'],
  ['absolute-form in upper case', 'HTTP://GATEWAY.TEST/v1/models'],
  ['https', 'https://gateway.test/v1/models'],
  ['another scheme', 'file:///etc/passwd'],
  ['authority-form', 'gateway.test:443'],
  ['authority-form with a path', 'gateway.test:443/v1/models'],
  ['*', '*'],
  ['no slash', 'v1/models'],
  ['a query alone', '?/v1/models'],
  ['//', '//v1/models'],
  ['// and a host', '//evil.test/v1/models'],
  ['// and user info', '//user@evil.test/v1/models'],
  ['///', '///v1/models'],
  ['/\\', '/\\evil.test/v1/models'],
  ['\\', '\\\\evil.test/v1/models'],
  ['a backslash', '/v1\\models'],
  ['a backslash and dots', '/v1/models/..\\..\\admin'],
  ['a fragment', '/v1/models#x'],
  ['a fragment in a query', '/v1/models?a=b#x'],
  ['// behind a provider', '/p/default//evil.test/v1/models'],
  ['a tab', '/v1/mod\tels'],
  ['a tab in a query', '/v1/models?a\tb'],
  ['NUL', '/v1/models\0'],
  ['a control byte', '/v1/models\x01'],
  ['DEL', '/v1/models\x7f'],
  ['bytes of UTF-8', '/v1/models/\xc3\xa9'],
  ['bytes of UTF-8 in a query', '/v1/models?q=\xc3\xa9'],
  ['a no-break space', '/v1/models\xa0'],
  ['an encoded NUL', '/v1/models/%00'],
  ['an encoded line break', '/v1/models/x%0d%0aX-Smuggled:%201'],
  ['an encoded DEL', '/v1/models/%7f'],
  ['a control byte encoded twice', '/v1/models/%2500'],
  ['% at the end', '/v1/models/%'],
  ['half an escape', '/v1/models/%4'],
  ['an escape of other letters', '/v1/models/%zz'],
  ['half an escape before a query', '/v1/models/%4?a=b'],
  ['a long escape', '/v1/models/%u002e%u002e/x'],
  ['a malformed escape behind a provider', '/p/default/v1/%g0'],
])('refuses %s', async (_, target) => {
  const [reply] = await wire.send(request(`GET ${target}`, [wire.auth]));
  wire.expectRefusal(reply, 400, 'invalid_path');
  await wire.expectSound(0);
});

it('does not take a space for part of a target', async () => {
  const [reply] = await wire.send(request('GET /v1/models /x', [wire.auth]));
  wire.expectRefusal(reply, 400, 'invalid_request');
  await wire.expectSound(0);
});

it('has one form of refusal also where the router alone knows that there is nothing', async () => {
  for (const line of ['GET /health/nothing', 'POST /health/live', 'GET /health//admin', 'GET /metrics/x']) {
    const [reply] = await wire.send(request(line, []));
    wire.expectRefusal(reply, 404, 'not_found');
  }
  for (const target of ['/admin/v1/teams/%ff', '/admin/v1/providers/%C0%AE/test', '/admin/%e2%82']) {
    const [reply] = await wire.send(request(`GET ${target}`, []));
    wire.expectRefusal(reply, 400, 'invalid_path');
  }
  await wire.expectSound(0);
});
