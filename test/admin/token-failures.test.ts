import { Logger } from '@nestjs/common';
import { TokenFailures } from '../../src/admin/token-failures.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';

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
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: unknown) => void told.push(String(line)));
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
