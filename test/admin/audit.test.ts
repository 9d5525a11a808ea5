import type { AuditView } from '../../src/audit/audit.schema.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { signIn } from './browser.js';
import { type AdminBody, call, fieldsOf } from './call.js';
import { changingRoutes } from './routes.js';

let postern: TestGateway;
beforeAll(async () => {
  postern = await startTestGateway({ TRUSTED_PROXIES: '127.0.0.0/8' });
});
afterAll(() => postern.stop());

const PROVIDER_SECRET = 'sk-canary-audit-0123456789';

let names = 0;
const team = async () => (await call(postern, 'POST', '/teams', { name: `team ${++names}` })).body;
const key = async () =>
  (await call(postern, 'POST', '/keys', { team: 'default', name: `key ${++names}` })).body;
const newProvider = () => ({
  name: `provider-${++names}`,
  url: 'http://127.0.0.1:9',
  secret: PROVIDER_SECRET,
});
const provider = async () => (await call(postern, 'POST', '/providers', newProvider())).body;

const newGroup = () => ({ name: `group ${++names}` });
const group = async () => (await call(postern, 'POST', '/groups', newGroup())).body;

const newRoute = () => ({ name: `route-${++names}`, targets: [{ provider: 'default' }] });
const route = async () => (await call(postern, 'POST', '/routes', newRoute())).body;

const newPrice = () => ({ catalog: 'mine', model: `model-${++names}`, input: '1' });
const price = async () => (await call(postern, 'POST', '/prices', newPrice())).body;

const budget = async () => {
  const owner = { team: 'default', name: `key ${++names}`, budgets: [{ usd: '1', period: 'day' }] };
  const { id } = (await call(postern, 'POST', '/keys', owner)).body;
  return (await call(postern, 'GET', `/limits?key=${id}`)).body.data[0] as AdminBody;
};

// A closed port: the test of a webhook needs no receiver.
const newWebhook = () => ({ url: 'http://127.0.0.1:9/', events: ['key.expiring'] });
const webhook = async () => (await call(postern, 'POST', '/webhooks', newWebhook())).body;
const EVENT = '01890a5d-ac96-774b-bcce-b302099a8057';
const delivery = async () => {
  const made = await webhook();
  const event = `INSERT INTO webhook_event (id, type, data) VALUES ($1, 'key.expiring', '{}') ON CONFLICT DO NOTHING`;
  await postern.database.query(event, [EVENT]);
  await postern.database.query('INSERT INTO webhook_delivery (webhook_id, event_id) VALUES ($1, $2)', [
    made.id,
    EVENT,
  ]);
  return made;
};
const job = async () => {
  const { id } = (await call(postern, 'POST', '/keys', { team: 'default', name: `key ${++names}` })).body;
  const [made] = await postern.database.query<AdminBody>(
    `INSERT INTO provider_job (id, started_at, provider, kind, digest, team_id, key_id, state)
     SELECT gen_random_uuid(), now(), 'default', 'batch', sha256(id::text::bytea), team_id, id, 'unknown'
     FROM gateway_key WHERE id = $1 RETURNING id`,
    [id],
  );
  return made!;
};
const newSink = () => ({ name: `sink-${++names}`, kind: 'http', url: 'http://127.0.0.1:9/' });
const sink = async () => (await call(postern, 'POST', '/sinks', newSink())).body;
const newPolicy = () => ({
  name: `policy-${++names}`,
  url: 'http://127.0.0.1:9/',
  secret: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
});
const policy = async () => (await call(postern, 'POST', '/policies', newPolicy())).body;
const newTrust = async () => ({
  name: `trust ${++names}`,
  key: (await key()).id,
  issuer: 'https://login.example.com',
  audience: 'gateway',
  claims: { sub: ['job'] },
});
const trust = async () => (await call(postern, 'POST', '/trusts', await newTrust())).body;
const person = async () => {
  const [made] = await postern.database.query<AdminBody>(
    `INSERT INTO person (id, issuer, subject, name) VALUES (gen_random_uuid(), 'https://login.example.com', $1, 'Jo')
     RETURNING id`,
    [`person-${++names}`],
  );
  return made!;
};
const endedPerson = async () => {
  const made = await person();
  await call(postern, 'POST', `/people/${made.id}/end`, {});
  return made;
};
const fromClient = async () => {
  const [{ id: personId }, { id: keyId }] = [await person(), await key()];
  const [made] = await postern.database.query<AdminBody>(
    `INSERT INTO sign_in (id, person_id, key_id, surface, expires_at)
     VALUES (gen_random_uuid(), $1, $2, 'test', now() + interval '1 hour') RETURNING id`,
    [personId, keyId],
  );
  return made!;
};
/** @param server on which it was noticed; only what was lost on the one that runs is put back */
const regressionOn = (server: string) => async () => {
  const [made] = await postern.database.query<AdminBody>(
    `INSERT INTO database_regression (id, server, state)
     VALUES (gen_random_uuid(), ${server}, 'waiting') RETURNING id`,
  );
  return made!;
};
const newToken = () => ({ name: `token ${++names}`, role: 'viewer' });
const token = async () => (await call(postern, 'POST', '/tokens', newToken())).body;

const session = async () => {
  await signIn(postern, ADMIN_TOKEN);
  return (await call(postern, 'GET', '/sessions?limit=1')).body.data[0] as AdminBody;
};

const rows = () => postern.database.query<Partial<AuditView>>('SELECT * FROM audit_log ORDER BY id');

/**
 * How each changing route is called so that it changes something: the row it leaves, or rows if it makes many changes, or
 * null where it changes nothing.
 */
const CHANGES: Record<
  string,
  {
    subject: () => Promise<AdminBody | null>;
    body?: (subject: AdminBody) => object;
    query?: string;
    leaves: string | string[] | null;
  }
> = {
  'POST /admin/v1/teams': {
    subject: () => Promise.resolve(null),
    body: () => ({ name: `team ${++names}` }),
    leaves: 'team created',
  },
  'PATCH /admin/v1/teams/:id': { subject: team, body: () => ({ disabled: true }), leaves: 'team changed' },
  'POST /admin/v1/groups': {
    subject: () => Promise.resolve(null),
    body: newGroup,
    leaves: 'group created',
  },
  'POST /admin/v1/trusts': {
    subject: async () => (await newTrust()) as unknown as AdminBody,
    body: (subject) => subject,
    leaves: 'trust created',
  },
  'PATCH /admin/v1/trusts/:id': { subject: trust, body: () => ({ enabled: false }), leaves: 'trust changed' },
  'DELETE /admin/v1/trusts/:id': { subject: trust, leaves: 'trust removed' },
  'POST /admin/v1/trusts/:id/test': { subject: trust, body: () => ({ token: 'x' }), leaves: null },
  'POST /admin/v1/database/regressions/:id/put-back': {
    subject: regressionOn('pg_postmaster_start_time()'),
    body: () => ({}),
    leaves: 'regression put_back',
  },
  'POST /admin/v1/database/regressions/:id/dismiss': {
    subject: regressionOn(`now() - random() * interval '1 year'`),
    body: () => ({}),
    leaves: 'regression dismissed',
  },
  'POST /admin/v1/people/:id/end': { subject: person, body: () => ({}), leaves: 'person ended' },
  'POST /admin/v1/people/:id/reopen': { subject: endedPerson, body: () => ({}), leaves: 'person reopened' },
  'POST /admin/v1/people/:id/forget': { subject: endedPerson, body: () => ({}), leaves: 'person forgotten' },
  'DELETE /admin/v1/sign-ins/:id': { subject: fromClient, leaves: 'sign_in ended' },
  'POST /admin/v1/limits/preview': {
    subject: () => Promise.resolve(null),
    body: () => ({ owner: 'installation', budgets: [{ usd: '1', period: 'day' }] }),
    leaves: null,
  },
  'PATCH /admin/v1/limits/installation': {
    subject: () => Promise.resolve(null),
    body: () => ({ limits: { requests_per_minute: ++names } }),
    leaves: 'installation_limits changed',
  },
  'PATCH /admin/v1/groups/:id': { subject: group, body: () => ({ note: 'shared' }), leaves: 'group changed' },
  'DELETE /admin/v1/groups/:id': { subject: group, leaves: 'group removed' },
  'POST /admin/v1/apply': {
    subject: () => Promise.resolve(null),
    body: () => ({ document: { teams: [{ name: `team ${++names}` }] } }),
    leaves: ['team created', 'configuration applied'],
  },
  'POST /admin/v1/routes': {
    subject: () => Promise.resolve(null),
    body: newRoute,
    leaves: 'route created',
  },
  'PATCH /admin/v1/routes/:name': {
    subject: route,
    body: () => ({ strategy: 'spread' }),
    leaves: 'route changed',
  },
  'DELETE /admin/v1/routes/:name': { subject: route, leaves: 'route removed' },
  'POST /admin/v1/keys': {
    subject: () => Promise.resolve(null),
    body: () => ({ team: 'default', name: `key ${++names}` }),
    leaves: 'key created',
  },
  'PATCH /admin/v1/keys/:id': { subject: key, body: () => ({ endpoints: 'all' }), leaves: 'key changed' },
  'POST /admin/v1/keys/:id/rotate': { subject: key, leaves: 'key rotated' },
  'POST /admin/v1/keys/:id/revoke': { subject: key, leaves: 'key revoked' },
  'POST /admin/v1/keys/find': { subject: key, body: ({ key }) => ({ key }), leaves: null },
  'POST /admin/v1/providers': {
    subject: () => Promise.resolve(null),
    body: newProvider,
    leaves: 'provider created',
  },
  'PATCH /admin/v1/providers/:name': {
    subject: provider,
    body: () => ({ default: true }),
    leaves: 'provider changed',
  },
  'POST /admin/v1/prices': { subject: () => Promise.resolve(null), body: newPrice, leaves: 'price created' },
  'PATCH /admin/v1/prices/:id': { subject: price, body: () => ({ output: '2' }), leaves: 'price changed' },
  'DELETE /admin/v1/prices/:id': { subject: price, leaves: 'price removed' },
  'POST /admin/v1/prices/reprice': {
    subject: () => Promise.resolve(null),
    body: () => ({ from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' }),
    leaves: 'price repriced',
  },
  'POST /admin/v1/limits/:id/reset': {
    subject: budget,
    body: () => ({ reason: 'extended' }),
    leaves: 'limit reset',
  },
  'POST /admin/v1/webhooks': {
    subject: () => Promise.resolve(null),
    body: newWebhook,
    leaves: 'webhook created',
  },
  'PATCH /admin/v1/webhooks/:id': {
    subject: webhook,
    body: () => ({ events: ['price.missing'] }),
    leaves: 'webhook changed',
  },
  'DELETE /admin/v1/webhooks/:id': { subject: webhook, leaves: 'webhook removed' },
  'POST /admin/v1/webhooks/:id/test': { subject: webhook, leaves: null },
  'POST /admin/v1/webhooks/:id/replay': {
    subject: delivery,
    body: () => ({ event_id: EVENT }),
    leaves: 'webhook replayed',
  },
  'POST /admin/v1/policies': {
    subject: () => Promise.resolve(null),
    body: newPolicy,
    leaves: 'policy created',
  },
  'PATCH /admin/v1/policies/:id': {
    subject: policy,
    // Rejections would be in the way of other calls.
    body: () => ({ enabled: false }),
    leaves: 'policy changed',
  },
  'DELETE /admin/v1/policies/:id': { subject: policy, leaves: 'policy removed' },
  'POST /admin/v1/policies/:id/test': { subject: policy, body: () => ({ model: 'm' }), leaves: null },
  'POST /admin/v1/sinks': {
    subject: () => Promise.resolve(null),
    body: newSink,
    leaves: 'sink created',
  },
  'PATCH /admin/v1/sinks/:id': {
    subject: sink,
    body: () => ({ enabled: false }),
    leaves: 'sink changed',
  },
  'POST /admin/v1/sinks/:id/replay': {
    subject: sink,
    body: () => ({ from: '1969-01-01T00:00:00Z' }),
    leaves: 'sink replayed',
  },
  'DELETE /admin/v1/sinks/:id': { subject: sink, leaves: 'sink removed' },
  'POST /admin/v1/tokens': {
    subject: () => Promise.resolve(null),
    body: newToken,
    leaves: 'token created',
  },
  'DELETE /admin/v1/tokens/:id': { subject: token, leaves: 'token revoked' },
  'DELETE /admin/v1/sessions/:id': { subject: session, leaves: 'session ended' },
  'DELETE /admin/v1/sessions': {
    subject: session,
    query: '?actor=admin-token',
    leaves: 'session ended',
  },
  'DELETE /admin/v1/providers/:name': { subject: provider, leaves: 'provider removed' },
  'POST /admin/v1/providers/:name/test': { subject: provider, leaves: null },
  'POST /admin/v1/jobs/:id/check': { subject: job, leaves: null },
};

describe('the audit log', () => {
  it('covers every changing route of the running gateway', () => {
    // Signing in and out needs a browser: sessions.test.ts has it.
    const routes = changingRoutes(postern)
      .map(({ method, path }) => `${method} ${path}`)
      .filter((route) => !route.endsWith(' /admin/v1/session'))
      // The OpenID provider sends it: the tests of logouts have it.
      .filter((route) => !route.endsWith(' /admin/v1/oidc/logout'));
    const unlisted = routes.filter((route) => !(route in CHANGES));
    expect(unlisted.map((route) => `${route}: add to CHANGES the entry that it leaves`)).toEqual([]);
    expect(Object.keys(CHANGES).filter((route) => !routes.includes(route))).toEqual([]);
  });

  it.each(Object.keys(CHANGES))('has exactly the rows of %s, and none of a rejected one', async (route) => {
    const { subject, body, query = '', leaves } = CHANGES[route]!;
    const [method, pattern] = route.split(' ') as [string, string];
    const at = await subject();
    const path = pattern
      .replace('/admin/v1', '')
      .replace(/:(?:\w+_)?id/, at?.id ?? '')
      .replace(':name', at?.name ?? '');
    const before = await rows();
    const order = body?.(at!);
    const response = await fetch(`${postern.url}/admin/v1${path}${query}`, {
      method,
      headers: {
        authorization: `Bearer ${ADMIN_TOKEN}`,
        'content-type': 'application/json',
        'x-forwarded-for': '203.0.113.7',
      },
      body: JSON.stringify(order ?? {}),
    });
    expect(response.status).toBeLessThan(300);
    const left = (await rows()).slice(before.length);
    expect(left.map(({ subject_type, action }) => `${subject_type} ${action}`)).toEqual(
      leaves === null ? [] : [leaves].flat(),
    );
    if (leaves !== null) {
      expect(left[0]).toMatchObject({ actor: 'admin-token', client_ip: '203.0.113.7' });
    }
    // Again with what cannot be: a body with an unknown field.
    const rejected = await call(postern, method, path, { surprise: 1 });
    expect([400, 404]).toContain(rejected.status);
    expect(await rows()).toHaveLength(before.length + left.length);
  });

  it('begins with the first team and key', async () => {
    expect((await rows()).slice(0, 2)).toMatchObject([
      { actor: 'start', action: 'created', subject_type: 'team', subject_name: 'default', client_ip: null },
      { actor: 'start', action: 'created', subject_type: 'key', subject_name: 'default/first', before: null },
    ]);
  });

  it('tells of a change what differs, of a rotation what the new secret begins with', async () => {
    const { id, prefix } = await key();
    await postern.storeProviders('azure');
    await call(postern, 'PATCH', `/keys/${id}`, { disabled: true, providers: ['azure'] });
    const { body } = await call(postern, 'POST', `/keys/${id}/rotate`, { grace_seconds: 60 });
    const { data } = (await call(postern, 'GET', `/audit?subject_id=${id}`)).body;
    expect(data.map(({ action, before, after }) => ({ action, before, after }))).toEqual([
      {
        action: 'rotated',
        before: { prefix, previous_secret_expires_at: null },
        after: {
          prefix: body.prefix,
          previous_secret_expires_at: body.previous_secret_expires_at,
          grace_seconds: 60,
          tokens_valid_from: expect.any(String) as string,
        },
      },
      {
        action: 'changed',
        before: { disabled: false, providers: null },
        after: { disabled: true, providers: ['azure'] },
      },
      { action: 'created', before: null, after: expect.objectContaining({ id, prefix }) as object },
    ]);
  });

  it('names the secrets that a rotation ends at once', async () => {
    const { id } = await key();
    for (let i = 0; i < 2; i++) await call(postern, 'POST', `/keys/${id}/rotate`, { grace_seconds: 60 });
    const [entry] = (await call(postern, 'GET', `/audit?subject_id=${id}`)).body.data;
    const ended = await postern.database.query<{ id: string; prefix: string }>(
      'SELECT id, prefix FROM gateway_key_secret WHERE key_id = $1 AND expires_at <= now()',
      [id],
    );
    expect(ended).toHaveLength(1);
    expect(entry).toMatchObject({
      after: { ended_secrets: [ended[0]!.prefix], ended_secret_ids: [ended[0]!.id] },
    });
  });

  it('says nothing of what changed nothing', async () => {
    const { id, name } = await key();
    await call(postern, 'POST', `/keys/${id}/revoke`);
    const before = await rows();
    await call(postern, 'POST', `/keys/${id}/revoke`);
    await call(postern, 'PATCH', `/keys/${id}`, { name });
    expect(await rows()).toEqual(before);
  });

  it('is empty of a change that was rolled back', async () => {
    const { name } = await key();
    const before = await rows();
    expect((await call(postern, 'POST', '/keys', { team: 'default', name })).status).toBe(409);
    expect(await rows()).toEqual(before);
  });

  it('makes no change that it cannot remember', async () => {
    const { id } = await key();
    await postern.database.query('ALTER TABLE audit_log RENAME TO audit_log_away');
    expect((await call(postern, 'POST', `/keys/${id}/revoke`)).status).toBe(500);
    await postern.database.query('ALTER TABLE audit_log_away RENAME TO audit_log');
    expect((await call(postern, 'GET', `/keys/${id}`)).body.revoked_at).toBeNull();
  });

  it('holds no key, no digest and no secret of a provider', async () => {
    const made = await key();
    const rotated = await call(postern, 'POST', `/keys/${made.id}/rotate`);
    const sealed = await provider();
    await call(postern, 'PATCH', `/providers/${sealed.name}`, { secret: `${PROVIDER_SECRET}-2` });
    const [dump] = await postern.database.query<{ text: string }>(
      'SELECT json_agg(a)::text AS text FROM audit_log a',
    );
    const digests = await postern.database.query<{ digest: string }>(
      `SELECT encode(digest, 'hex') AS digest FROM gateway_key_secret`,
    );
    for (const secret of [made.key, rotated.body.key, postern.key, PROVIDER_SECRET, ADMIN_TOKEN]) {
      expect(dump!.text).not.toContain(secret);
    }
    for (const { digest } of digests) expect(dump!.text).not.toContain(digest);
    expect(dump!.text).not.toMatch(/ptn_[0-9A-Za-z]{38}|sealed_secret/);
  });
});

describe('GET /admin/v1/audit', () => {
  it('pages newest first and filters by actor, action, subject and time', async () => {
    const { id, name, team, created_at } = await key();
    await call(postern, 'PATCH', `/keys/${id}`, { disabled: true });
    await call(postern, 'PATCH', `/keys/${id}`, { disabled: false });
    const one = (await call(postern, 'GET', `/audit?subject_id=${id}&limit=2`)).body;
    const two = (await call(postern, 'GET', `/audit?subject_id=${id}&limit=2&cursor=${one.next_cursor}`))
      .body;
    expect([...one.data, ...two.data].map(({ action }) => action)).toEqual(['changed', 'changed', 'created']);
    expect(two.next_cursor).toBeNull();
    const found = async (query: string) =>
      (await call(postern, 'GET', `/audit?subject_id=${id}&${query}`)).body.data.length;
    expect(await found('action=changed')).toBe(2);
    expect(await found('action=revoked')).toBe(0);
    expect(await found('actor=admin-token')).toBe(3);
    expect(await found('actor=start')).toBe(0);
    expect(await found('subject_type=key')).toBe(3);
    expect(await found('subject_type=team')).toBe(0);
    expect(await found(`subject_name=${encodeURIComponent(`${team!}/${name!}`)}`)).toBe(3);
    expect(await found(`from=${created_at}`)).toBe(3);
    expect(await found('to=2020-01-01T00:00:00Z')).toBe(0);
  });

  it.each([
    ...['action=x', 'subject_type=x', 'subject_id=x', 'from=now', 'limit=0', 'cursor=x', 'who=me'],
    'from=2031-01-02T00:00:00Z&to=2031-01-01T23:59:59Z',
  ])('rejects ?%s', async (query) => {
    const answer = await call(postern, 'GET', `/audit?${query}`);
    expect(answer.status).toBe(400);
    expect(fieldsOf(answer)).toEqual([query.split('=')[0]]);
  });
});
