import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { runHere } from '../cli/run-here.js';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { signedIn, signInSettings, USERS } from './device-flow.js';
import { exchange } from './exchanges.js';
import { FakeIssuer } from './fake-issuer.js';

const SUBJECT = 'repo:acme/api:ref:refs/heads/main';

let provider: RawProvider;
let issuer: FakeIssuer;
let gateway: TestGateway;
beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], 'ok'));
  });
  issuer = await FakeIssuer.start();
});
afterAll(async () => {
  await provider.stop();
  await issuer.stop();
});
afterEach(() => gateway.stop());

/** Starts a gateway with a trust. @returns the ID of the trust */
async function start(settings: Record<string, string>): Promise<string> {
  gateway = await startTestGateway({ PROVIDER_URL: provider.url, ...settings });
  await gateway.admin('POST', '/keys', { team: 'default', name: 'ci', secret: false });
  const trust = { name: 'job', key: 'default/ci', issuer: issuer.url, audience: 'gateway' };
  const { id } = await gateway.admin<{ id: string }>('POST', '/trusts', {
    ...trust,
    claims: { sub: [SUBJECT] },
  });
  return id;
}

/** Makes a call. @returns its row */
async function rowWith(key: string): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${key}`, 'x-gateway-user': SUBJECT };
  const response = await fetch(`${gateway.url}/v1/models`, { headers });
  await response.arrayBuffer();
  expect(response.status).toBe(200);
  return await gateway.row(response.headers.get('x-gateway-request-id')!);
}

async function issuedToken(): Promise<string> {
  const { token } = await exchange(gateway, 'job', await issuer.sign({ sub: SUBJECT }));
  return token!;
}

it('is in the rows of a token, not in those of a static key, and filters calls and usage', async () => {
  await start({});
  const { id, subject } = await rowWith(await issuedToken());
  expect(subject).toBe(SUBJECT);
  // What a client says about its end user is no subject.
  expect((await rowWith(gateway.key)).subject).toBeNull();

  const query = `subject=${encodeURIComponent(SUBJECT)}`;
  const { data } = await gateway.admin<{ data: unknown[] }>('GET', `/requests?${query}`);
  expect(data).toEqual([expect.objectContaining({ id, subject: SUBJECT })]);
  const usage = await gateway.admin<{ data: unknown[] }>('GET', `/usage?group_by=key&${query}`);
  expect(usage.data).toEqual([expect.objectContaining({ key: 'ci', calls: 1 })]);
  const listed = await runHere(['requests', 'list', '--subject', SUBJECT, '--json'], {
    POSTERN_URL: gateway.url,
    POSTERN_ADMIN_TOKEN: ADMIN_TOKEN,
  });
  expect(JSON.parse(listed.stdout)).toMatchObject({ data: [{ id }] });
});

it.each([
  ['id', (trust: string) => `trust:${trust}`],
  ['none', () => null],
] as const)('is stored as REQUEST_LOG_SUBJECT=%s says', async (form, stored) => {
  const trust = await start({ REQUEST_LOG_SUBJECT: form });
  expect((await rowWith(await issuedToken())).subject).toBe(stored(trust));
  expect((await rowWith(gateway.key)).subject).toBeNull();
  const rows = await gateway.database.query(
    'SELECT r FROM request_log r WHERE to_jsonb(r) - $1 ->> $2 LIKE $3',
    ['end_user', 'subject', 'repo%'],
  );
  expect(rows).toEqual([]);
});

describe('of a call with the token of a sign-in', () => {
  let idp: OpenIdProvider;
  let publicUrl: string;
  beforeAll(async () => {
    publicUrl = `http://127.0.0.1:${await unusedPort()}`;
    idp = await OpenIdProvider.start(publicUrl, USERS);
  });
  afterAll(() => idp.stop());

  it.each([
    ['full', () => 'sso:jane@example.com'],
    ['id', (person: string) => `person:${person}`],
    ['none', () => null],
  ] as const)('is stored as REQUEST_LOG_SUBJECT=%s says', async (form, stored) => {
    const settings = { PROVIDER_URL: provider.url, REQUEST_LOG_SUBJECT: form };
    gateway = await startTestGateway({ ...settings, ...signInSettings(idp, publicUrl) });
    await gateway.admin('PATCH', '/teams/default', { sign_in: {} });
    const { access } = await signedIn(gateway, idp);
    const { id } = await gateway.admin<{ id: string }>('GET', '/people/jane@example.com');
    expect((await rowWith(access)).subject).toBe(stored(id));
    const rows = await gateway.database.query('SELECT FROM request_log r WHERE r::text LIKE $1', ['%jane%']);
    expect(rows).toHaveLength(form === 'full' ? 1 : 0);
  });
});
