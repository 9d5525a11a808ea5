import { Logger } from '@nestjs/common';
import { TokenFailures } from '../../src/admin/token-failures.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';

describe('token', () => {
  let postern: TestGateway;
  beforeAll(async () => {
    postern = await startTestGateway();
  });
  afterAll(() => postern.stop());

  const endpoints = [
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
    it.each(endpoints)('is asked for by %s %s, before anything else is looked at', async (method, path) => {
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
});

describe('failures', () => {
  describe('wrong admin tokens from one address', () => {
    let postern: TestGateway;
    beforeAll(async () => {
      postern = await startTestGateway({ TRUSTED_PROXIES: '127.0.0.0/8' });
    });
    afterAll(() => postern.stop());

    const ask = (authorization: string | null, address: string) =>
      fetch(`${postern.url}/admin/v1/teams`, {
        headers: { 'x-forwarded-for': address, ...(authorization !== null && { authorization }) },
      });

    it('are told to wait after ten; the right one from the same address always passes', async () => {
      for (let i = 0; i < 10; i++) {
        const response = await ask('Bearer wrong', '198.51.100.1');
        expect([response.status, response.headers.get('retry-after')]).toEqual([401, null]);
      }
      const late = await ask('Bearer wrong', '198.51.100.1');
      expect(late.status).toBe(401);
      expect(late.headers.get('connection')).toBe('close');
      expect(Number(late.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(Number(late.headers.get('retry-after'))).toBeLessThanOrEqual(60);
      expect((await ask(`Bearer ${ADMIN_TOKEN}`, '198.51.100.1')).status).toBe(200);
    });

    it('do not count for another address', async () => {
      expect((await ask('Bearer wrong', '198.51.100.2')).headers.get('retry-after')).toBeNull();
    });

    it('are not counted where nothing was sent', async () => {
      for (let i = 0; i < 12; i++) {
        const response = await ask(null, '198.51.100.3');
        expect([response.status, response.headers.get('retry-after')]).toEqual([401, null]);
      }
    });
  });

  describe('TokenFailures', () => {
    let told: string[];
    beforeEach(() => {
      told = [];
      jest
        .spyOn(Logger.prototype, 'warn')
        .mockImplementation((line: unknown) => void told.push(String(line)));
    });
    afterEach(() => jest.restoreAllMocks());

    it('tells the log of the first, the tenth and the hundredth, with the address', async () => {
      const failures = new TokenFailures();
      for (let i = 0; i < 150; i++) await failures.count('203.0.113.9');
      expect(told).toEqual([
        '203.0.113.9 sent a wrong admin token (1 in a minute).',
        '203.0.113.9 sent a wrong admin token (10 in a minute).',
        '203.0.113.9 sent a wrong admin token (100 in a minute).',
      ]);
    });

    it('counts the addresses of one IPv6 network together', async () => {
      const failures = new TokenFailures();
      for (let i = 1; i <= 10; i++) expect(await failures.count(`2001:db8:0:1::${i}`)).toBe(0);
      expect(await failures.count('2001:db8::1:2:3:4:5')).toBeGreaterThan(0);
      expect(await failures.count('2001:db8:0:2::1')).toBe(0);
    });

    it('counts together all addresses past the ten thousandth', async () => {
      const failures = new TokenFailures();
      for (let i = 0; i < 10_000; i++) await failures.count(`10.0.${i >> 8}.${i & 255}`);
      for (let i = 0; i < 10; i++) expect(await failures.count(`11.0.0.${i}`)).toBe(0);
      expect(await failures.count('11.0.0.99')).toBeGreaterThan(0);
      expect(await failures.count('10.0.0.1')).toBe(0);
    });
  });
});
