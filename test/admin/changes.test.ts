import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { type AdminAnswer, call, fieldsOf } from './call.js';

let postern: TestGateway;
beforeAll(async () => {
  postern = await startTestGateway();
});
afterAll(() => postern.stop());

let names = 0;
const make = async (): Promise<AdminAnswer> =>
  call(postern, 'POST', '/keys', { team: 'default', name: `changed-${++names}` });

const NOBODY = '01890a5d-ac96-774b-bcce-b302099a8057';
const tagOf = ({ headers }: AdminAnswer) => headers.get('etag')!;

describe('PATCH /admin/v1/keys/:id', () => {
  it('changes what is given and nothing else', async () => {
    const { key: _, ...before } = (await make()).body;
    await postern.storeProviders('azure');
    const change = {
      name: 'renamed',
      expires_at: '2093-01-31T12:00:00.000Z',
      providers: ['azure'],
      endpoints: 'all',
      idempotency: 'replay',
      disabled: true,
    };
    const all = await call(postern, 'PATCH', `/keys/${before.id}`, change);
    expect(all.status).toBe(200);
    expect(all.body).toEqual({ ...before, ...change, version: 2 });
    const back = await call(postern, 'PATCH', `/keys/${before.id}`, { expires_at: null, providers: null });
    expect(back.body).toEqual({ ...before, ...change, expires_at: null, providers: null, version: 3 });
    expect((await call(postern, 'GET', `/keys/${before.id}`)).body).toEqual(back.body);
  });

  it('is no change when it says what is so already', async () => {
    const { body } = await make();
    for (const change of [{}, { name: body.name }, { disabled: false, providers: null, expires_at: null }]) {
      const answer = await call(postern, 'PATCH', `/keys/${body.id}`, change);
      expect([answer.status, answer.body.version]).toEqual([200, 1]);
    }
  });

  it.each([
    [{ name: '' }, 'name'],
    [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    [{ providers: [] }, 'providers'],
    [{ endpoints: 'some' }, 'endpoints'],
    [{ idempotency: null }, 'idempotency'],
    [{ disabled: 'yes' }, 'disabled'],
    [{ team: 'default' }, 'team'],
    [{ revoked_at: null }, 'revoked_at'],
    [{ key: 'x' }, 'key'],
  ])('rejects %j', async (change, field) => {
    const { body } = await make();
    const answer = await call(postern, 'PATCH', `/keys/${body.id}`, change);
    expect(answer.status).toBe(400);
    expect(fieldsOf(answer)).toEqual([field]);
  });

  it('answers 404 for no key, 409 for a taken name and for a revoked key, whose name can be freed', async () => {
    expect((await call(postern, 'PATCH', `/keys/${NOBODY}`, { name: 'x' })).status).toBe(404);
    const [one, two] = [await make(), await make()];
    const taken = await call(postern, 'PATCH', `/keys/${one.body.id}`, { name: two.body.name });
    expect(taken.body.error).toMatchObject({ code: 'conflict', details: [{ field: 'name' }] });
    await call(postern, 'POST', `/keys/${one.body.id}/revoke`);
    const revoked = await call(postern, 'PATCH', `/keys/${one.body.id}`, { disabled: true });
    expect([revoked.status, revoked.body.error.message]).toEqual([409, expect.stringContaining('revoked')]);
    expect((await call(postern, 'PATCH', `/keys/${one.body.id}`, { name: 'old one' })).status).toBe(200);
  });
});

describe('POST /admin/v1/keys/:id/rotate', () => {
  it('shows the new secret, this once, in a response that nobody may keep', async () => {
    const before = (await make()).body;
    const answer = await call(postern, 'POST', `/keys/${before.id}/rotate`, { grace_seconds: 60 });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const rotated = answer.body as typeof answer.body & { ended_secrets: string[] };
    const { key, ended_secrets: ended, ...shown } = rotated;
    expect(ended).toEqual([]);
    expect(key).toMatch(/^ptn_[0-9A-Za-z]{38}$/);
    expect(key).not.toBe(before.key);
    expect((await call(postern, 'GET', `/keys/${before.id}`)).body).toEqual(shown);
    const byOld = await call(postern, 'GET', `/keys?prefix=${before.prefix}`);
    expect(byOld.body.data).toEqual([shown]);
  });

  it.each([-1, 1.5, '60', null, 2_592_001, Number.MAX_SAFE_INTEGER])(
    'rejects a grace of %j',
    async (grace) => {
      const answer = await call(postern, 'POST', `/keys/${NOBODY}/rotate`, { grace_seconds: grace });
      expect(answer.status).toBe(400);
      expect(fieldsOf(answer)).toEqual(['grace_seconds']);
    },
  );

  it('answers 404 for no key, 409 for one that is revoked or past its end', async () => {
    expect((await call(postern, 'POST', `/keys/${NOBODY}/rotate`)).status).toBe(404);
    const { body } = await make();
    await postern.database.query(
      `UPDATE gateway_key SET expires_at = now() - interval '1 s' WHERE id = '${body.id}'`,
    );
    expect((await call(postern, 'POST', `/keys/${body.id}/rotate`)).status).toBe(409);
    await call(postern, 'POST', `/keys/${body.id}/revoke`);
    const revoked = await call(postern, 'POST', `/keys/${body.id}/rotate`);
    expect([revoked.status, revoked.body.error.message]).toEqual([
      409,
      expect.stringContaining('create another'),
    ]);
  });
});

describe('/admin/v1/teams/:id', () => {
  it('is shown, renamed and disabled', async () => {
    const made = await call(postern, 'POST', '/teams', { name: 'to change' });
    const { id } = made.body;
    const shown = await call(postern, 'GET', `/teams/${id}`);
    expect([shown.status, shown.body, tagOf(shown)]).toEqual([200, made.body, tagOf(made)]);
    const changed = await call(postern, 'PATCH', `/teams/${id}`, { name: 'changed', disabled: true });
    expect(changed.body).toEqual({ ...made.body, name: 'changed', disabled: true, version: 2 });
  });

  it('takes the name in place of the ID', async () => {
    const made = await call(postern, 'POST', '/teams', { name: 'R&D / 検索' });
    const path = `/teams/${encodeURIComponent('R&D / 検索')}`;
    const shown = await call(postern, 'GET', path);
    expect([shown.status, shown.body, tagOf(shown)]).toEqual([200, made.body, tagOf(made)]);
    const changed = await call(postern, 'PATCH', path, { disabled: true }, { 'if-match': tagOf(made) });
    expect(changed.body).toEqual({ ...made.body, disabled: true, version: 2 });
    expect((await call(postern, 'GET', '/teams/nobody')).body.error.message).toBe(
      'id: no team has this name or id; list the teams, or create it first',
    );
  });

  it('answers 404 for no team, 409 for a taken name, 400 for one like an id', async () => {
    for (const id of [NOBODY, 'nobody', "'", '%27', 'a%2Fb']) {
      const got = await call(postern, 'GET', `/teams/${id}`);
      expect([id, got.status, got.body]).toEqual([id, 404, got.body]);
      expect((await call(postern, 'PATCH', `/teams/${id}`, { disabled: true })).status).toBe(404);
    }
    const { body } = await call(postern, 'POST', '/teams', { name: 'another' });
    expect((await call(postern, 'PATCH', `/teams/${body.id}`, { name: 'default' })).status).toBe(409);
    expect((await call(postern, 'PATCH', `/teams/${body.id}`, { name: NOBODY })).status).toBe(400);
    expect((await call(postern, 'PATCH', `/teams/${body.id}`, { disabled: null })).status).toBe(400);
  });
});

describe('If-Match', () => {
  const endpoints: [string, string, () => Promise<string>, object][] = [
    ['PATCH', 'a key', async () => `/keys/${(await make()).body.id}`, { disabled: true }],
    [
      'PATCH',
      'a team',
      async () => `/teams/${(await call(postern, 'POST', '/teams', { name: `t${++names}` })).body.id}`,
      { disabled: true },
    ],
  ];

  it.each(endpoints)('lets one of two win who %s %s from the same state', async (method, _, path, change) => {
    const at = await path();
    const tag = tagOf(await call(postern, 'GET', at));
    const attempt = (name: string) => call(postern, method, at, { ...change, name }, { 'if-match': tag });
    const answers = await Promise.all([attempt(`first ${names}`), attempt(`second ${names}`)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    const lost = answers.find(({ status }) => status === 409)!;
    expect(lost.body.error).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('read it again') as string,
      details: [{ field: 'version' }],
    });
    const won = answers.find(({ status }) => status === 200)!;
    expect((await call(postern, 'GET', at)).body).toEqual(won.body);
    const again = await call(postern, method, at, { disabled: false }, { 'if-match': tagOf(won) });
    expect(again.status).toBe(200);
  });

  it.each(['rotate', 'revoke'])('keeps a %s from a key that was changed meanwhile', async (verb) => {
    const made = await make();
    await call(postern, 'PATCH', `/keys/${made.body.id}`, { name: `moved ${verb}` });
    const stale = { 'if-match': tagOf(made) };
    expect((await call(postern, 'POST', `/keys/${made.body.id}/${verb}`, {}, stale)).status).toBe(409);
    expect((await call(postern, 'GET', `/keys/${made.body.id}`)).body).toMatchObject({
      revoked_at: null,
      prefix: made.body.prefix,
    });
  });

  it.each([
    ['*', 200],
    ['"nonsense"', 409],
    ['ETAG', 200],
    ['W/ETAG', 409],
    ['nonsense', 400],
    ['""', 409],
    ['"a", "b"', 409],
  ])('%s gives %i', async (ifMatch, status) => {
    const made = await make();
    const headers = { 'if-match': ifMatch.replace('ETAG', tagOf(made)) };
    const answer = await call(postern, 'PATCH', `/keys/${made.body.id}`, { disabled: true }, headers);
    expect(answer.status).toBe(status);
  });
});
