import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';

let postern: TestGateway;
beforeAll(async () => {
  postern = await startTestGateway();
});
afterAll(() => postern.stop());

const roads = [
  ['GET', '/admin/v1/teams'],
  ['POST', '/admin/v1/teams'],
  ['GET', '/admin/v1/keys'],
  ['POST', '/admin/v1/keys'],
  ['GET', '/admin/v1/keys/01890a5d-ac96-774b-bcce-b302099a8057'],
  ['POST', '/admin/v1/keys/01890a5d-ac96-774b-bcce-b302099a8057/revoke'],
  ['GET', '/admin/v1/requests'],
  ['GET', '/admin/v1/requests/01890a5d-ac96-774b-bcce-b302099a8057'],
  ['DELETE', '/admin/v1/keys'],
  ['OPTIONS', '/admin/v1/keys'],
  ['GET', '/admin/v1/nothing'],
  ['GET', '/admin'],
] as const;

describe('the admin token', () => {
  it.each(roads)('is asked for by %s %s, before anything else is looked at', async (method, path) => {
    const body = method === 'POST' ? { body: '{not json', headers: { 'content-type': 'text/odd' } } : {};
    const response = await fetch(postern.url + path, { method, ...body });
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(await response.json()).toEqual({
      error: {
        message: expect.stringContaining('ADMIN_TOKEN') as string,
        code: 'invalid_admin_token',
        details: [],
      },
    });
  });

  it.each([
    ['nothing after the scheme', () => 'Bearer '],
    ['another scheme', () => `Basic ${ADMIN_TOKEN}`],
    ['no scheme', () => ADMIN_TOKEN],
    ['a shorter one', () => `Bearer ${ADMIN_TOKEN.slice(0, -1)}`],
    ['a longer one', () => `Bearer ${ADMIN_TOKEN}x`],
    ['another case', () => `Bearer ${ADMIN_TOKEN.toUpperCase()}`],
    ['a gateway key', () => `Bearer ${postern.key}`],
    ['8 KB of it', () => `Bearer ${'x'.repeat(8_192)}`],
  ])('is not %s', async (_, authorization) => {
    const response = await fetch(`${postern.url}/admin/v1/keys`, {
      headers: { authorization: authorization() },
    });
    expect(response.status).toBe(401);
  });

  it('is taken from Authorization only', async () => {
    const headers = { 'x-api-key': ADMIN_TOKEN, 'api-key': ADMIN_TOKEN, cookie: `token=${ADMIN_TOKEN}` };
    const query = `?token=${ADMIN_TOKEN}`;
    expect((await fetch(`${postern.url}/admin/v1/keys${query}`, { headers })).status).toBe(401);
  });

  it('opens with the scheme in any case', async () => {
    const headers = { authorization: `bearer ${ADMIN_TOKEN}` };
    expect((await fetch(`${postern.url}/admin/v1/keys`, { headers })).status).toBe(200);
  });

  it('does not open /v1', async () => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    expect((await fetch(`${postern.url}/v1/models`, { headers })).status).toBe(401);
  });
});
