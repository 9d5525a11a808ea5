import { postForm } from '../identity/exchanges.js';
import { storeSignInToken, storeTokens, storeTrust } from '../identity/stored-tokens.js';
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
      kind: 'key',
      subject: null,
      trust: null,
      sign_in_id: null,
      secret_status: 'active',
      secret_expired: false,
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

  interface Token {
    token: string;
    keyId: string;
    parentId: string;
  }
  const find = async ({ token }: Token) => (await call(postern, 'POST', '/keys/find', { key: token })).body;
  const newKey = async () => {
    const key = { team: 'default', name: `key-${Math.random()}`, secret: false };
    return (await postern.admin<{ id: string }>('POST', '/keys', key)).id;
  };

  async function exchanged(): Promise<Token> {
    const keyId = await newKey();
    const parentId = await storeTrust(postern.database, keyId);
    const [token] = await storeTokens(postern.database, { keyId, trustId: parentId });
    return { token: token!, keyId, parentId };
  }

  async function signedIn(): Promise<Token> {
    const keyId = await newKey();
    const { token, signInId } = await storeSignInToken(postern.database, keyId);
    return { token, keyId, parentId: signInId };
  }

  it('shows of a token by which trust it was issued, or to which sign-in, and to whom', async () => {
    const [job, person] = [await exchanged(), await signedIn()];
    const works = {
      status: 'active',
      secret_status: 'active',
      secret_expires_at: expect.any(String) as string,
    };
    expect(await find(job)).toMatchObject({
      ...{ id: job.keyId, ...works },
      ...{ kind: 'exchange', subject: 'job', trust: `trust-${job.parentId}`, sign_in_id: null },
    });
    expect(await find(person)).toMatchObject({
      ...{ id: person.keyId, ...works },
      ...{ kind: 'sign_in', subject: 'sso:jane@example.com', trust: null, sign_in_id: person.parentId },
    });
  });

  const query = (sql: string) => (token: Token) => postern.database.query(sql, [token.parentId]);
  it.each<[string, () => Promise<Token>, (token: Token) => Promise<unknown>]>([
    ['its trust is disabled', exchanged, query('UPDATE trust SET enabled = false WHERE id = $1')],
    ['its key was rotated', exchanged, ({ keyId }) => postern.admin('POST', `/keys/${keyId}/rotate`, {})],
    [
      'it was revoked',
      exchanged,
      ({ token }) => postForm(`${postern.url}/oauth/revoke`, { token }).then(({ status }) => status),
    ],
    [
      'it has expired',
      exchanged,
      query(`UPDATE gateway_key_secret SET expires_at = now() - interval '1 hour' WHERE trust_id = $1`),
    ],
    [
      'its sign-in has ended',
      signedIn,
      query(`UPDATE sign_in SET ended_at = now(), end_reason = 'signed_out' WHERE id = $1`),
    ],
    [
      'its person has ended',
      signedIn,
      query('UPDATE person SET ended_at = now() WHERE id = (SELECT person_id FROM sign_in WHERE id = $1)'),
    ],
  ])('says that a token does not work: %s', async (_, issue, end) => {
    const token = await issue();
    expect(await find(token)).toMatchObject({ status: 'active', secret_status: 'active' });
    await end(token);
    expect(await find(token)).toMatchObject({ status: 'active', secret_status: 'ended' });
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
