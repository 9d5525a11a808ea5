import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { send, signIn, CONSOLE } from '../admin/browser.js';

interface Body {
  id: string;
  key: string;
  token: string;
  owner: string | null;
  error: { code: string; details: { field: string; message: string }[] };
}

let postern: TestGateway;
/** Leads the team mine. */
let lead: string;
let member: string;
const others = { team: '', key: '' };
beforeAll(async () => {
  postern = await startTestGateway({ MASTER_KEY: Buffer.alloc(32, 1).toString('base64') });
  for (const name of ['openai', 'local'])
    await postern.admin('POST', '/providers', { name, url: 'http://127.0.0.1:9', secret: null });
  await postern.admin('POST', '/teams', {
    name: 'mine',
    limits: { requests_per_minute: 100, tokens_per_minute: null, concurrent_requests: null },
    budgets: [
      // Says nothing of other models.
      { usd: '1', period: 'month', models: ['dear*'] },
      { usd: '100', period: 'month' },
      { usd: '20', period: 'day' },
      { tokens: 1_000, period: 'total' },
    ],
    each_end_user: { requests_per_minute: 10, budgets: [{ usd: '5', period: 'day' }] },
    self_service: { keys_per_user: 2, max_days: 30 },
  });
  const { id: team } = await postern.admin<Body>('POST', '/teams', {
    name: 'theirs',
    self_service: { keys_per_user: 2, max_days: 30 },
  });
  const { id: key } = await postern.admin<Body>('POST', '/keys', { team: 'theirs', name: 'production' });
  Object.assign(others, { team, key });
  const token = async (name: string, role: string) =>
    (await postern.admin<Body>('POST', '/tokens', { name, role, teams: ['mine'] })).token;
  lead = await token('lena', 'lead');
  member = await token('mia', 'team');
});
afterAll(() => postern.stop());

async function ask(token: string, method: string, path: string, body?: object) {
  const response = await fetch(`${postern.url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Body };
}
const field = ({ status, body }: Awaited<ReturnType<typeof ask>>) => [status, body.error?.details[0]?.field];
let names = 0;
const make = (body: object = {}) =>
  ask(lead, 'POST', '/keys', { team: 'mine', name: `key ${++names}`, ...body });
/** A key that an administrator created in the team mine. */
const made = async (body: object = {}) =>
  (await postern.admin<Body>('POST', '/keys', { team: 'mine', name: `made ${++names}`, ...body })).id;
const callWith = async (key: string) =>
  (await fetch(`${postern.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;

describe('a lead', () => {
  it('creates, changes, rotates and revokes keys of the team, and is named for it', async () => {
    const created = await make({
      expires_at: null,
      models: ['gpt-5*'],
      budgets: [{ usd: '100', period: 'month' }],
      limits: { requests_per_minute: 100 },
      contact: 'lena@example.com',
      providers: ['local'],
      cache: { ttl_seconds: 60, shared: 'key' },
    });
    expect(created).toMatchObject({ status: 201, body: { owner: null, endpoints: 'inference' } });
    const path = `/keys/${created.body.id}`;
    expect(
      await ask(lead, 'PATCH', path, { budgets: [{ usd: '1', period: 'day' }], note: 'x' }),
    ).toMatchObject({
      status: 200,
      body: { note: 'x', budgets: [{ usd: '1.00', period: 'day' }] },
    });
    const rotated = await ask(lead, 'POST', `${path}/rotate`, { grace_seconds: 0 });
    expect(rotated.status).toBe(200);
    expect(await callWith(created.body.key)).toBe(401);
    expect((await ask(lead, 'POST', `${path}/revoke`)).status).toBe(200);
    expect(await callWith(rotated.body.key)).toBe(401);
    const { data } = await postern.admin<{ data: { actor: string; action: string }[] }>(
      'GET',
      `/audit?subject_id=${created.body.id}`,
    );
    expect(data.map(({ actor, action }) => `${actor} ${action}`)).toEqual([
      'token:lena revoked',
      'token:lena rotated',
      'token:lena changed',
      'token:lena created',
    ]);
  });

  it('revokes and rotates the key of a leaver, and one that an administrator made', async () => {
    const { body } = await ask(member, 'POST', '/keys', { team: 'mine', name: 'of mia' });
    expect(body.owner).toBe('token:mia');
    expect((await ask(lead, 'POST', `/keys/${body.id}/rotate`)).status).toBe(200);
    expect((await ask(lead, 'POST', `/keys/${body.id}/revoke`)).status).toBe(200);
    expect(await callWith(body.key)).toBe(401);
    expect((await ask(lead, 'POST', `/keys/${await made()}/revoke`)).status).toBe(200);
  });

  it('sets which keys members may have, within the budgets of the team', async () => {
    const set = (self_service: unknown) => ask(lead, 'PATCH', '/teams/mine', { self_service });
    expect((await set({ keys_per_user: 5, max_days: 10, budget_usd_per_month: '100' })).status).toBe(200);
    expect(field(await set({ keys_per_user: 5, max_days: 10, budget_usd_per_month: '100.01' }))).toEqual([
      400,
      'self_service.budget_usd_per_month',
    ]);
    expect((await set(null)).status).toBe(200);
    expect((await set({ keys_per_user: 2, max_days: 30 })).status).toBe(200);
    expect(
      await postern.admin('GET', '/audit?subject_type=team&subject_name=mine&action=changed'),
    ).toMatchObject({ data: [{ actor: 'token:lena' }, {}, {}] });
  });

  it('does the same in a session', async () => {
    const cookie = await signIn(postern, lead);
    const body = JSON.stringify({ team: 'mine', name: 'in a session' });
    expect((await send(postern, 'POST /admin/v1/keys', [cookie, ...CONSOLE], body)).status).toBe(201);
  });
});

describe('a lead does not', () => {
  it.each(['theirs', 'by ID'])('create a key of another team: %s', async (team) => {
    const key = { team: team === 'by ID' ? others.team : team, name: 'foreign' };
    expect(field(await ask(lead, 'POST', '/keys', key))).toEqual([404, 'team']);
  });

  it('reach a key of another team, by whatever it is called', async () => {
    const { key } = others;
    for (const id of [key, key.toUpperCase()]) {
      expect((await ask(lead, 'GET', `/keys/${id}`)).status).toBe(404);
      expect((await ask(lead, 'PATCH', `/keys/${id}`, { name: 'taken over' })).status).toBe(404);
      expect((await ask(lead, 'PATCH', `/keys/${id}`, {})).status).toBe(404);
      expect((await ask(lead, 'POST', `/keys/${id}/rotate`)).status).toBe(404);
      expect((await ask(lead, 'POST', `/keys/${id}/revoke`)).status).toBe(404);
    }
    expect((await ask(lead, 'PATCH', '/keys/production', { name: 'x' })).status).toBe(404);
    expect(await postern.admin('GET', `/keys/${key}`)).toMatchObject({ name: 'production', version: 1 });
  });

  it('move a key', async () => {
    const id = await made();
    for (const member of ['team', 'team_id', 'owner_id', 'self_service'])
      expect(field(await ask(lead, 'PATCH', `/keys/${id}`, { [member]: others.team }))).toEqual([
        400,
        member,
      ]);
  });

  it.each([
    ['endpoints', { endpoints: 'all' }],
    ['websockets', { websockets: true }],
    ['on_disconnect', { on_disconnect: 'finish' }],
    ['cache', { cache: { ttl_seconds: 60, shared: 'team' } }],
    ['cost_center', { cost_center: 'of somebody else' }],
  ])('set %s beyond the team', async (name, change) => {
    expect(field(await make(change))).toEqual([403, name]);
    const id = await made();
    expect(field(await ask(lead, 'PATCH', `/keys/${id}`, change))).toEqual([403, name]);
    // What an administrator has set stays, and does not stand in the way of other changes.
    const granted = await made(change);
    expect((await ask(lead, 'PATCH', `/keys/${granted}`, { ...change, note: 'kept' })).status).toBe(200);
  });

  it('undo a stop of an administrator', async () => {
    const id = await made();
    expect((await ask(lead, 'PATCH', `/keys/${id}`, { disabled: true })).status).toBe(200);
    expect(field(await ask(lead, 'PATCH', `/keys/${id}`, { disabled: false }))).toEqual([403, 'disabled']);
    const revoked = await made();
    await postern.admin('POST', `/keys/${revoked}/revoke`);
    expect((await ask(lead, 'PATCH', `/keys/${revoked}`, { expires_at: null, models: ['x'] })).status).toBe(
      409,
    );
  });

  const usd = (amount: string, period: string) => ({ budgets: [{ usd: amount, period }] });
  it.each([
    ['budgets.0.usd', usd('100.000000001', 'month')],
    ['budgets.0.usd', usd('20.01', 'day')],
    // A day may not cost more than the month.
    ['budgets.0.usd', usd('101', 'week')],
    ['budgets.0.tokens', { budgets: [{ tokens: 1_001, period: 'day' }] }],
    ['budgets.0.usd', { budgets: [{ usd: '1.01', period: 'month', models: ['dear*'] }] }],
    [
      'budgets.1.usd',
      {
        budgets: [
          { usd: '1', period: 'day' },
          { usd: '500', period: 'month' },
        ],
      },
    ],
    ['limits.requests_per_minute', { limits: { requests_per_minute: 101 } }],
    ['each_end_user.requests_per_minute', { each_end_user: { requests_per_minute: 11 } }],
    ['each_end_user.budgets.0.usd', { each_end_user: { budgets: [{ usd: '5.01', period: 'day' }] } }],
  ])('set %s above that of the team: %j', async (name, change) => {
    expect(field(await make(change))).toEqual([400, name]);
    expect(field(await ask(lead, 'PATCH', `/keys/${await made()}`, change))).toEqual([400, name]);
  });

  it('give a key other providers than those an administrator has named for the team', async () => {
    await postern.admin('PATCH', '/teams/mine', {
      self_service: { keys_per_user: 2, max_days: 30, providers: ['local'] },
    });
    expect(field(await make({ providers: ['openai'] }))).toEqual([403, 'providers']);
    expect(field(await make({ providers: ['local', 'openai'] }))).toEqual([403, 'providers']);
    expect(await make()).toMatchObject({ status: 201, body: { providers: ['local'] } });
    const id = await made({ providers: ['local'] });
    for (const providers of [['openai'], null])
      expect(field(await ask(lead, 'PATCH', `/keys/${id}`, { providers }))).toEqual([403, 'providers']);
    // The rule itself neither.
    for (const self_service of [
      null,
      { keys_per_user: 2, max_days: 30 },
      { keys_per_user: 2, max_days: 30, providers: null },
      { keys_per_user: 2, max_days: 30, providers: ['local', 'openai'] },
    ])
      expect(field(await ask(lead, 'PATCH', '/teams/mine', { self_service }))).toEqual([
        403,
        'self_service.providers',
      ]);
    const narrow = { self_service: { keys_per_user: 1, max_days: 30, providers: ['local'] } };
    expect((await ask(lead, 'PATCH', '/teams/mine', narrow)).status).toBe(200);
    await postern.admin('PATCH', '/teams/mine', { self_service: { keys_per_user: 2, max_days: 30 } });
  });

  it.each([
    ['name', { name: 'renamed' }],
    ['disabled', { disabled: true }],
    ['models', { models: null }],
    ['limits', { limits: null }],
    ['budgets', { budgets: [] }],
    ['cost_center', { cost_center: 'x' }],
    ['stream_usage', { stream_usage: 'ask', self_service: null }],
  ])('change %s of the team', async (name, change) => {
    expect(field(await ask(lead, 'PATCH', '/teams/mine', change))).toEqual([403, name]);
    expect(await postern.admin('GET', '/teams/mine')).toMatchObject({ self_service: { keys_per_user: 2 } });
  });

  it('change another team', async () => {
    for (const team of ['theirs', others.team])
      expect((await ask(lead, 'PATCH', `/teams/${team}`, { self_service: null })).status).toBe(404);
    expect(await postern.admin('GET', '/teams/theirs')).toMatchObject({ version: 1 });
  });

  it('create teams, tokens, providers, prices or webhooks, or reset a budget', async () => {
    const limits = await postern.admin<{ data: { id: string }[] }>('GET', '/limits?team=mine');
    for (const path of ['/teams', '/tokens', '/providers', '/prices', '/webhooks', '/apply', '/sinks'])
      expect([path, (await ask(lead, 'POST', path, {})).status]).toEqual([path, 403]);
    expect((await ask(lead, 'POST', `/limits/${limits.data[0]!.id}/reset`, { reason: 'more' })).status).toBe(
      403,
    );
    expect((await ask(lead, 'GET', '/tokens')).status).toBe(403);
  });

  it('lead a team any more once the token lost it', async () => {
    const { token, id } = await postern.admin<Body>('POST', '/tokens', {
      name: 'for a while',
      role: 'lead',
      teams: ['mine'],
    });
    const key = await made();
    await postern.database.query(`UPDATE admin_token SET teams = '{}' WHERE id = $1`, [id]);
    expect((await ask(token, 'POST', `/keys/${key}/revoke`)).status).toBe(404);
    expect((await ask(token, 'POST', '/keys', { team: 'mine', name: 'late' })).status).toBe(404);
  });

  it('fill the audit log: a limit of changes an hour, and revoking always works', async () => {
    const key = await made();
    await postern.database.query(
      `INSERT INTO audit_log (id, at, actor, action, subject_type, subject_id, subject_name)
       SELECT ('${uuidPrefix()}' || lpad(i::text, 12, '0'))::uuid, now(), 'token:lena', 'changed', 'key', $1::uuid, 'x'
       FROM generate_series(1, 200) i`,
      [key],
    );
    expect((await make()).status).toBe(409);
    expect((await ask(lead, 'PATCH', `/keys/${key}`, { note: 'y' })).status).toBe(409);
    expect((await ask(lead, 'POST', `/keys/${key}/rotate`)).status).toBe(409);
    expect((await ask(lead, 'POST', `/keys/${key}/revoke`)).status).toBe(200);
  });
});

/** The beginning of a UUIDv7 of now. */
function uuidPrefix(): string {
  const hex = Date.now().toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-`;
}
