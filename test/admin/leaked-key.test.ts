import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { call, fieldsOf } from './call.js';

describe('POST /admin/v1/keys/find', () => {
  let postern: TestGateway;
  beforeAll(async () => {
    postern = await startTestGateway();
  });
  afterAll(() => postern.stop());

  it('shows the key of a secret, whatever its state, and never the secret', async () => {
    const { id, key } = (await call(postern, 'POST', '/keys', { team: 'default', name: 'leaked' })).body;
    const found = await call(postern, 'POST', '/keys/find', { key: ` ${key}\r\n` });
    expect(found.status).toBe(200);
    expect(found.headers.get('cache-control')).toBe('no-store');
    const { body: shown } = await call(postern, 'GET', `/keys/${id}`);
    expect(found.body).toEqual({
      ...shown,
      status: 'active',
      secret_status: 'active',
      secret_expires_at: null,
    });
    await call(postern, 'POST', `/keys/${id}/rotate`, { grace_seconds: 3600 });
    const rotated = await call(postern, 'POST', '/keys/find', { key });
    expect(rotated.body).toMatchObject({ id, status: 'active', secret_status: 'active' });
    const { previous_secret_expires_at: until } = (await call(postern, 'GET', `/keys/${id}`)).body;
    expect(rotated.body).toMatchObject({ secret_expires_at: until, previous_secret_expires_at: until });
    expect(Date.parse(until!)).toBeGreaterThan(Date.now());
    await call(postern, 'POST', `/keys/${id}/revoke`);
    const revoked = await call(postern, 'POST', '/keys/find', { key });
    expect(revoked.body).toMatchObject({ id, status: 'revoked', previous_secret_expires_at: null });
    expect(JSON.stringify([found, rotated, revoked])).not.toContain(key);
  });

  it.each<[{ key?: string }, number]>([
    [{ key: `ptn_${'0'.repeat(32)}3P7K1K` }, 404],
    [{ key: 'no-key' }, 400],
    [{ key: '' }, 400],
    [{}, 400],
  ])('answers %j with %s and does not repeat it', async (body, status) => {
    const answer = await call(postern, 'POST', '/keys/find', body);
    expect(answer.status).toBe(status);
    if (body.key) expect(JSON.stringify(answer.body)).not.toContain(body.key);
    else expect(fieldsOf(answer)).toEqual(['key']);
  });
});
