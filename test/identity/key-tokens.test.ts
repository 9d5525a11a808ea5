import { soon } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { exchange, postForm, statusWith } from './exchanges.js';
import { FakeIssuer } from './fake-issuer.js';

interface Tokens {
  trusts: { name: string; last_used_at: string | null }[];
  data: { subject: string; trust: string; expires_at: string }[];
  next_cursor: string | null;
}

let provider: RawProvider;
let issuer: FakeIssuer;
let gateway: TestGateway;
let keyId: string;
beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], 'ok'));
  });
  issuer = await FakeIssuer.start();
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
  await gateway.admin('POST', '/teams', { name: 'search' });
  const key = { team: 'search', name: 'ci', secret: false };
  keyId = (await gateway.admin<{ id: string }>('POST', '/keys', key)).id;
  await gateway.admin('POST', '/trusts', {
    ...{ name: 'jobs', key: 'search/ci', issuer: issuer.url, audience: 'gateway' },
    claims: { sub: ['job:*'] },
  });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
  await issuer.stop();
});

const issue = async (sub: string) => (await exchange(gateway, 'jobs', await issuer.sign({ sub }))).token!;
const tokens = (query = '') => gateway.admin<Tokens>('GET', `/keys/${keyId}/tokens${query}`);
const live = async () => (await gateway.admin<{ live_tokens: number }>('GET', '/trusts/jobs')).live_tokens;

/** What somebody with this role in these teams is told. */
async function toldTo(role: string, teams: string[]): Promise<{ status: number; body: Tokens }> {
  const body = { name: `${role} of ${teams.join()}`, role, teams };
  const { token } = await gateway.admin<{ token: string }>('POST', '/tokens', body);
  const response = await fetch(`${gateway.url}/admin/v1/keys/${keyId}/tokens`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return { status: response.status, body: (await response.json()) as Tokens };
}

it('lists those that work now with whom they were issued to; members see the trusts that issue them', async () => {
  expect(await live()).toBe(0);
  await issue('job:one');
  const two = await issue('job:two');
  const { data, next_cursor } = await tokens('?limit=1');
  expect(data).toEqual([expect.objectContaining({ kind: 'exchange', subject: 'job:two', trust: 'jobs' })]);
  const older = await tokens(`?limit=1&cursor=${next_cursor}`);
  expect(older.data.map(({ subject }) => subject)).toEqual(['job:one']);
  expect(await live()).toBe(2);
  // Nothing of it can be used as a token.
  expect(JSON.stringify([data, older])).not.toMatch(/ptn_/);

  await postForm(`${gateway.url}/oauth/revoke`, { token: two });
  expect((await tokens()).data.map(({ subject }) => subject)).toEqual(['job:one']);
  expect(await live()).toBe(1);

  for (const role of ['team', 'lead']) {
    const { status, body } = await toldTo(role, ['search']);
    expect(status).toBe(200);
    expect(body.data).toEqual([]);
    expect(body.trusts.map((trust) => Object.keys(trust).sort())).toEqual([['last_used_at', 'name']]);
    expect((await toldTo(role, ['default'])).status).toBe(404);
  }
});

it('shows none of a trust that is disabled, nor of a key that has been rotated or disabled', async () => {
  const token = await issue('job:three');
  expect(await statusWith(gateway, token)).toBe(200);
  await gateway.admin('PATCH', '/trusts/jobs', { enabled: false });
  expect([await live(), (await tokens()).data]).toEqual([0, []]);
  await soon(async () => (await statusWith(gateway, token)) === 401);
  await gateway.admin('PATCH', '/trusts/jobs', { enabled: true });
  expect(await live()).toBeGreaterThan(0);
  await soon(async () => (await statusWith(gateway, token)) === 200);
  await gateway.admin('PATCH', `/keys/${keyId}`, { disabled: true });
  expect([await live(), (await tokens()).data]).toEqual([0, []]);
  await gateway.admin('PATCH', `/keys/${keyId}`, { disabled: false });
  await gateway.admin('POST', `/keys/${keyId}/rotate`, {});
  expect([await live(), (await tokens()).data]).toEqual([0, []]);
  await soon(async () => (await statusWith(gateway, token)) === 401);
  // What the use of a trust changes is no change of the trust.
  const { data } = await gateway.admin<{ data: object[] }>('GET', '/audit?subject_type=trust');
  expect(data).toHaveLength(3);
  expect(JSON.stringify(data)).not.toContain('live_tokens');
});
