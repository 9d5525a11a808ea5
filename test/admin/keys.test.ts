import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { call, fieldsOf } from './call.js';

let postern: TestGateway;
beforeAll(async () => {
  postern = await startTestGateway();
});
afterAll(() => postern.stop());

const SHAPE = [
  'id',
  'name',
  'team',
  'team_id',
  'prefix',
  'created_at',
  'previous_secret_expires_at',
  'expires_at',
  'latest_expiry',
  'last_used_at',
  'revoked_at',
  'disabled',
  'providers',
  'endpoints',
  'idempotency',
  'websockets',
  'models',
  'stream_usage',
  'on_disconnect',
  'cache',
  'limits',
  'filtered_limits',
  'budgets',
  'each_end_user',
  'each_session',
  'owner',
  'contact',
  'cost_center',
  'note',
  'self_service',
  'owner_id',
  'origin',
  'version',
];

describe('/admin/v1/keys', () => {
  it('issues a key with every default, and shows it in this response only', async () => {
    const { status, headers, body } = await call(postern, 'POST', '/keys', { team: 'default', name: 'ci' });
    expect(status).toBe(201);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(Object.keys(body)).toEqual([...SHAPE, 'key']);
    expect(body).toMatchObject({
      name: 'ci',
      team: 'default',
      prefix: body.key.slice(0, 12),
      expires_at: null,
      previous_secret_expires_at: null,
      last_used_at: null,
      revoked_at: null,
      disabled: false,
      providers: null,
      endpoints: 'inference',
      idempotency: 'forward',
      websockets: false,
      on_disconnect: null,
    });
    const { key, ...shown } = body;
    expect(key).toMatch(/^ptn_[0-9A-Za-z]{38}$/);
    expect((await call(postern, 'GET', `/keys/${body.id}`)).body).toEqual(shown);
    expect((await call(postern, 'GET', '/keys')).body.data[0]).toEqual(shown);
  });

  it('issues a key with everything said, for a team by its id', async () => {
    const team = (await call(postern, 'POST', '/teams', { name: 'all said' })).body;
    await postern.storeProviders('azure-eu');
    const { status, body } = await call(postern, 'POST', '/keys', {
      team: team.id,
      name: 'full',
      expires_at: '2093-01-31T12:00:00+02:00',
      providers: ['default', 'azure-eu', 'default'],
      endpoints: 'all',
      idempotency: 'replay',
    });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      team: 'all said',
      team_id: team.id,
      expires_at: '2093-01-31T10:00:00.000Z',
      providers: ['default', 'azure-eu'],
      endpoints: 'all',
      idempotency: 'replay',
    });
  });

  it.each([
    [{ name: undefined }, 'name'],
    [{ team: undefined }, 'team'],
    [{ team: 7 }, 'team'],
    [{ team: 'nul\0' }, 'team'],
    [{ expires_at: '2093-01-31' }, 'expires_at'],
    [{ expires_at: '2093-01-31T12:00:00' }, 'expires_at'],
    [{ expires_at: '2020-01-31T12:00:00Z' }, 'expires_at'],
    [{ expires_at: '2093-02-30T12:00:00Z' }, 'expires_at'],
    [{ expires_at: 4102444800 }, 'expires_at'],
    [{ expires_at: '9999-12-31T23:59:59-23:59' }, 'expires_at'],
    [{ providers: [] }, 'providers'],
    [{ providers: 'default' }, 'providers'],
    [{ providers: ['Not A Name'] }, 'providers.0'],
    [{ endpoints: 'some' }, 'endpoints'],
    [{ idempotency: null }, 'idempotency'],
    [{ expiresAt: '2093-01-31T12:00:00Z' }, 'expiresAt'],
    [{ disabled: true }, 'disabled'],
  ])('rejects %j and names the field', async (part, field) => {
    const answer = await call(postern, 'POST', '/keys', { team: 'default', name: 'rejected', ...part });
    expect(answer.status).toBe(400);
    expect(answer.body.error.code).toBe('invalid_request');
    expect(fieldsOf(answer)).toEqual([field]);
    expect(answer.body.error.message).toContain(field);
  });

  it('rejects providers that there are not, and names those that there are', async () => {
    await postern.storeProviders('groq');
    const order = { team: 'default', name: 'typo', providers: ['grok', 'default', 'gork'] };
    const answer = await call(postern, 'POST', '/keys', order);
    expect([answer.status, fieldsOf(answer)]).toEqual([400, ['providers']]);
    expect(answer.body.error.message).toMatch(
      /^providers: there is no provider or route grok, gork that this team may use; add it first, or choose from default, (.*, )?groq$/,
    );
    const { body } = await call(postern, 'POST', '/keys', { ...order, providers: ['groq'] });
    const path = `/keys/${body.id}`;
    expect((await call(postern, 'PATCH', path, { providers: ['groq', 'gork'] })).status).toBe(400);
    // A key may keep a provider that was removed.
    await postern.database.query("DELETE FROM provider WHERE name = 'groq'");
    const kept = await call(postern, 'PATCH', path, { providers: ['groq'], endpoints: 'all' });
    expect(kept.body).toMatchObject({ providers: ['groq'], endpoints: 'all' });
  });

  it('shows until when older secrets work', async () => {
    const { body } = await call(postern, 'POST', '/keys', { team: 'default', name: 'rotated' });
    const endOf = async () =>
      (await call(postern, 'GET', `/keys/${body.id}`)).body.previous_secret_expires_at;
    const rotate = (grace_seconds: number) =>
      call(postern, 'POST', `/keys/${body.id}/rotate`, { grace_seconds });
    const asked = Date.now();
    const first = (await rotate(3_600)).body;
    const end = Date.parse(first.previous_secret_expires_at!);
    expect(end).toBeLessThanOrEqual(Date.now() + 3_600_000);
    expect(end).toBeGreaterThanOrEqual(asked + 3_600_000);
    expect(await endOf()).toBe(first.previous_secret_expires_at);
    // The last of them counts.
    const second = (await rotate(7_200)).body;
    expect(Date.parse(second.previous_secret_expires_at!)).toBeGreaterThan(end);
    expect(await endOf()).toBe(second.previous_secret_expires_at);
    expect((await rotate(0)).body.previous_secret_expires_at).toBeNull();
    expect(await endOf()).toBeNull();
  });

  it('names every wrong field at once, and no value', async () => {
    const answer = await call(postern, 'POST', '/keys', {
      name: '',
      endpoints: 'sk-secret',
      x: 1,
      [`a b`]: 2,
    });
    expect(fieldsOf(answer)).toEqual(
      expect.arrayContaining(['team', 'name', 'endpoints', 'x', 'a field with an unusual name']),
    );
    expect(JSON.stringify(answer.body)).not.toContain('sk-secret');
  });

  it('answers 404 for a team, a key or a revocation of what does not exist', async () => {
    const nobody = '/keys/01890a5d-ac96-774b-bcce-b302099a8057';
    for (const answer of [
      await call(postern, 'POST', '/keys', { team: 'nobody', name: 'x' }),
      await call(postern, 'GET', nobody),
      await call(postern, 'GET', '/keys/nonsense'),
      await call(postern, 'POST', `${nobody}/revoke`),
      await call(postern, 'GET', '/keys?team=nobody'),
    ]) {
      expect(answer.status).toBe(404);
      expect(answer.body.error.code).toBe('not_found');
    }
  });

  it('answers 409 for a name that the team uses already', async () => {
    const order = { team: 'default', name: 'twice' };
    expect((await call(postern, 'POST', '/keys', order)).status).toBe(201);
    expect((await call(postern, 'POST', '/keys', order)).status).toBe(409);
  });

  it('revokes, again and again with the same response, and the key no longer opens /v1', async () => {
    const { body } = await call(postern, 'POST', '/keys', { team: 'default', name: 'to end' });
    const headers = { authorization: `Bearer ${body.key}` };
    expect((await fetch(`${postern.url}/v1/models`, { headers })).status).not.toBe(401);
    const first = await call(postern, 'POST', `/keys/${body.id}/revoke`);
    expect(first.status).toBe(200);
    expect(Object.keys(first.body)).toEqual(SHAPE);
    expect(first.body.revoked_at).toMatch(/Z$/);
    const again = (await call(postern, 'POST', `/keys/${body.id}/revoke`, {})).body;
    expect(Object.keys(again)).toEqual(SHAPE);
    // Its use may be written at any time.
    expect(again).toEqual({ ...first.body, last_used_at: again.last_used_at });
    await eventually(async () => (await fetch(`${postern.url}/v1/models`, { headers })).status === 401);
  });

  it('filters by team, prefix and status', async () => {
    await call(postern, 'POST', '/teams', { name: 'filtered' });
    const { key, ...shown } = (await call(postern, 'POST', '/keys', { team: 'filtered', name: 'one' })).body;
    for (const query of ['team=filtered', `prefix=${key.slice(0, 12)}`, `team=filtered&status=active`]) {
      expect((await call(postern, 'GET', `/keys?${query}`)).body).toEqual({
        data: [shown],
        next_cursor: null,
      });
    }
    expect((await call(postern, 'GET', '/keys?team=filtered&status=revoked')).body.data).toEqual([]);
    expect((await call(postern, 'GET', '/keys?prefix=ptn%25')).status).toBe(400);
    expect((await call(postern, 'GET', '/keys?prefix=pt__')).body.data).toEqual([]);
  });

  it('filters by name, which each team may have once', async () => {
    for (const team of ['named a', 'named b']) {
      await call(postern, 'POST', '/teams', { name: team });
      await call(postern, 'POST', '/keys', { team, name: 'ci & cd' });
    }
    const name = `name=${encodeURIComponent('ci & cd')}`;
    const teamsOf = async (query: string) =>
      (await call(postern, 'GET', `/keys?${query}`)).body.data.map(({ team }) => team);
    expect(await teamsOf(name)).toEqual(['named b', 'named a']);
    expect(await teamsOf(`${name}&team=named%20a`)).toEqual(['named a']);
    expect(await teamsOf(`${name}&status=revoked`)).toEqual([]);
    expect((await call(postern, 'GET', '/keys?name=')).status).toBe(400);
  });

  it('rejects a whole key as a prefix without repeating it', async () => {
    const answer = await call(postern, 'GET', `/keys?prefix=${postern.key}`);
    expect(answer.status).toBe(400);
    expect(JSON.stringify(answer.body)).not.toContain(postern.key);
  });

  it.each([
    'limit=0',
    'limit=501',
    'limit=x',
    'limit=-1',
    'limit=1.5',
    'limit=',
    'limit=1&limit=2',
    'cursor=abc',
  ])('rejects ?%s', async (query) => {
    const answer = await call(postern, 'GET', `/keys?${query}`);
    expect(answer.status).toBe(400);
    expect(fieldsOf(answer)).toEqual(expect.arrayContaining([query.split('=')[0]]));
  });
});
