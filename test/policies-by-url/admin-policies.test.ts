import { commandUser } from '../../src/platform/actor.js';
import { ResealService } from '../../src/providers/reseal.service.js';
import { call, fieldsOf } from '../admin/call.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import {
  allow,
  createPolicy,
  decide,
  deny,
  Filter,
  isSigned,
  LONG_MS,
  newSecret,
  removePolicies,
} from './filter.js';

let postern: TestGateway;
let filter: Filter;
let provider: RawProvider;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], '{}'));
  });
  filter = await new Filter().listen();
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
  await postern.admin('POST', '/teams', { name: 'support' });
});
afterAll(async () => {
  await postern.stop();
  await filter.close();
  await provider.stop();
});
beforeEach(async () => {
  await removePolicies(postern);
  filter.asked.length = 0;
  filter.respond = allow;
});

it('shows a policy with names, and never its secret or the path of its URL', async () => {
  await postern.admin('POST', '/keys', { team: 'support', name: 'bot' });
  const secret = newSecret();
  const applies_to = { teams: ['support'], keys: ['support/bot'], models: ['gpt-5*'] };
  const created = await createPolicy(postern, filter, { secret, applies_to, timeout_ms: undefined });
  const { id } = created;
  expect(created).toEqual({
    id,
    name: 'dlp',
    url: `${filter.origin}/…`,
    secret_state: 'sealed',
    applies_to,
    send: 'head',
    timeout_ms: 300,
    on_failure: 'reject',
    cache_seconds: 0,
    order: 0,
    enabled: true,
    version: 1,
    created_at: expect.any(String) as string,
    updated_at: expect.any(String) as string,
  });
  expect(await postern.admin('GET', '/policies/dlp')).toEqual(created);
  expect(await postern.admin('GET', `/policies/${id}`)).toEqual(created);
  expect(await postern.admin('GET', '/policies')).toEqual({ data: [created], next_cursor: null });
  const stored = [
    ...(await postern.database.query<object>(`SELECT *, encode(sealed, 'escape') AS sealed FROM policy`)),
    ...(await postern.database.query<object>('SELECT * FROM audit_log')),
  ];
  const text = JSON.stringify([stored, created]);
  for (const canary of [secret, secret.slice('whsec_'.length), 'canary-filter-token', 'decide'])
    expect(text).not.toContain(canary);
});

it('lists policies in the order in which they are asked', async () => {
  for (const [name, order] of [
    ['c', 1],
    ['b', 1],
    ['a', 2],
    ['d', -1],
  ])
    await createPolicy(postern, filter, { name, order });
  const { data } = await postern.admin<{ data: { name: string }[] }>('GET', '/policies');
  expect(data.map(({ name }) => name)).toEqual(['d', 'b', 'c', 'a']);
});

it('changes a policy with If-Match, and records what changed but no secret', async () => {
  const { id } = await createPolicy(postern, filter);
  const first = await call(postern, 'GET', '/policies/dlp');
  const match = { 'if-match': first.headers.get('etag')! };
  const change = {
    name: 'pii',
    applies_to: { teams: ['support'] },
    on_failure: 'allow',
    secret: newSecret(),
  };
  const changed = await call(postern, 'PATCH', '/policies/dlp', change, match);
  expect(changed.body).toMatchObject({ name: 'pii', version: 2, applies_to: { teams: ['support'] } });
  expect((await call(postern, 'PATCH', `/policies/${id}`, { order: 5 }, match)).status).toBe(409);
  // The same again changes nothing.
  const { secret: _, ...rest } = change;
  expect(await postern.admin('PATCH', '/policies/pii', rest)).toMatchObject({ version: 2 });
  await postern.admin('PATCH', '/policies/pii', { url: `${filter.origin}/other` });
  const { data } = await postern.admin<{ data: object[] }>('GET', `/audit?subject_id=${id}`);
  expect(data).toMatchObject([
    { action: 'changed', subject_name: 'pii', after: { url: 'changed' } },
    {
      action: 'changed',
      subject_type: 'policy',
      before: { name: 'dlp', on_failure: 'reject', applies_to: { teams: null } },
      after: { name: 'pii', on_failure: 'allow', applies_to: { teams: ['support'] }, secret: 'changed' },
    },
    { action: 'created', subject_name: 'dlp' },
  ]);
});

it.each([
  [{ name: 'DLP' }, 'name'],
  [{ url: 'http://169.254.169.254/latest/meta-data' }, 'url'],
  [{ url: 'http://[fd00:ec2::254]/' }, 'url'],
  [{ url: 'http://1.1.1.1/' }, 'url'],
  [{ url: 'https://user:password@example.com/' }, 'url'],
  [{ url: 'ftp://example.com/' }, 'url'],
  [{ secret: 'secret' }, 'secret'],
  [{ secret: 'whsec_c2hvcnQ=' }, 'secret'],
  [{ secret: `whsec_${'A'.repeat(43)}` }, 'secret'],
  [{ secret: null }, 'secret'],
  [{ applies_to: { teams: [] } }, 'applies_to.teams'],
  [{ applies_to: { teams: ['nobody'] } }, 'applies_to.teams'],
  [{ applies_to: { keys: ['default/nobody'] } }, 'applies_to.keys'],
  [{ applies_to: { models: [] } }, 'applies_to.models'],
  [{ applies_to: { users: ['u'] } }, 'applies_to'],
  [{ send: 'everything' }, 'send'],
  [{ timeout_ms: 9 }, 'timeout_ms'],
  [{ timeout_ms: 30_001 }, 'timeout_ms'],
  [{ on_failure: 'retry' }, 'on_failure'],
  [{ cache_seconds: -1 }, 'cache_seconds'],
  [{ order: 0.5 }, 'order'],
])('rejects %j and names %s', async (settings, field) => {
  const body = { name: 'dlp', url: filter.url, secret: newSecret(), ...settings };
  const rejected = await call(postern, 'POST', '/policies', body);
  expect([rejected.status, fieldsOf(rejected)[0]]).toEqual([400, expect.stringContaining(field)]);
});

it('rejects a name that is taken, and more than 20 policies', async () => {
  await createPolicy(postern, filter);
  const again = { name: 'dlp', url: filter.url, secret: newSecret() };
  expect((await call(postern, 'POST', '/policies', again)).status).toBe(409);
  for (let i = 1; i < 20; i++) await createPolicy(postern, filter, { name: `p${i}` });
  const rejected = await call(postern, 'POST', '/policies', { ...again, name: 'one-more' });
  expect([rejected.status, rejected.body.error.message]).toEqual([
    409,
    'There can be 20 policies; remove one first.',
  ]);
  expect((await call(postern, 'PATCH', '/policies/p1', { name: 'p2' })).status).toBe(409);
});

it('asks about a call that is made up, and forwards nothing', async () => {
  const secret = newSecret();
  const key = await postern.admin<{ id: string; team_id: string }>('POST', '/keys', {
    team: 'support',
    name: 'tested',
  });
  await createPolicy(postern, filter, { secret, send: 'body', enabled: false });
  const body = '{"model":"m","x":"é"}';
  const tested = { key: 'support/tested', model: 'm', end_user: 'u', endpoint: '/v1/messages', body };
  const test = (made: object = {}) =>
    postern.admin<object>('POST', '/policies/dlp/test', { ...tested, ...made });
  expect(await test()).toMatchObject({
    ok: true,
    code: 'ok',
    message: 'OK: the call would be forwarded.',
    decision: { allow: true, code: null, message: null, tags: null },
  });
  const [asked] = filter.asked;
  expect(asked!.call).toMatchObject({
    key_id: key.id,
    team_id: key.team_id,
    model: 'm',
    end_user: 'u',
    method: 'POST',
    endpoint: '/v1/messages',
    body_bytes: Buffer.byteLength(body),
    tags: {},
  });
  expect(asked!.body.toString()).toBe(body);
  expect(isSigned(asked!, secret)).toBe(true);
  filter.respond = decide({ allow: true, tags: { class: 'public' } });
  expect(await test()).toMatchObject({ decision: { tags: { class: 'public' } } });
  filter.respond = deny;
  expect(await test({ key: null })).toMatchObject({
    ok: true,
    decision: { allow: false, code: 'pii_found', message: 'No card numbers, please.' },
  });
  expect(filter.asked.at(-1)!.call).toMatchObject({ key_id: null, team_id: null });
  filter.respond = decide({ decision: 'yes' });
  expect(await test()).toMatchObject({ ok: false, code: 'invalid_decision', decision: null });
  await postern.admin('PATCH', '/policies/dlp', { url: `http://127.0.0.1:${await unusedPort()}/` });
  expect(await test()).toMatchObject({
    ok: false,
    code: 'refused',
    message: expect.stringContaining('nothing listens') as string,
  });
  expect(provider.requests).toHaveLength(0);
});

it('is re-encrypted with a new master key like other secrets', async () => {
  await createPolicy(postern, filter);
  const reseal = postern.gateway.app.get(ResealService, { strict: false });
  expect((await reseal.reseal(commandUser())).current).toContain('policy dlp');
});

it('is changed by POST /apply, which keeps what is stored, and prunes', async () => {
  const secret = newSecret();
  const apply = (policies: object[], more = {}) =>
    call(postern, 'POST', '/apply', { document: { policies }, ...more });
  const dlp = { name: 'dlp', url: filter.url, secret, send: 'body', timeout_ms: LONG_MS };
  const made = await apply([dlp, { ...dlp, name: 'second', applies_to: { teams: ['support'] } }]);
  expect(made.status).toBe(200);
  const stored = { url: { stored: true }, secret: { stored: true } };
  const plan = async (policies: object[], more = {}) =>
    ((await apply(policies, { dry_run: true, ...more })).body as unknown as { plan: object[] }).plan;
  const second = { ...dlp, name: 'second', applies_to: { teams: ['support'] }, ...stored };
  expect(await plan([{ ...dlp, ...stored }, second])).toEqual([]);
  await postern.admin('PATCH', '/policies/dlp', { enabled: false });
  // A stop in an emergency stays.
  expect(await plan([dlp, second])).toEqual([]);
  expect(await plan([{ ...dlp, on_failure: 'allow' }, second])).toMatchObject([
    { action: 'update', type: 'policy', name: 'dlp', fields: { on_failure: { after: 'allow' } } },
  ]);
  expect((await apply([{ name: 'third', ...stored }])).body.error.message).toContain('nothing is stored');
  expect((await apply([dlp], { prune: true })).status).toBe(200);
  const { data } = await postern.admin<{ data: { name: string }[] }>('GET', '/policies');
  expect(data.map(({ name }) => name)).toEqual(['dlp']);
});
