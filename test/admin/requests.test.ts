import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { insertRow } from '../request-log/rows.js';
import { call, fieldsOf } from './call.js';

let postern: TestGateway;
let teamId: string;
beforeAll(async () => {
  postern = await startTestGateway();
  teamId = (await call(postern, 'POST', '/teams', { name: 'logged' })).body.id;
});
afterAll(() => postern.stop());

const NOW = new Date();

describe('/admin/v1/requests', () => {
  it('lists calls of a team by its name or id', async () => {
    const id = await insertRow(postern.database, NOW, { team_id: teamId });
    await insertRow(postern.database, NOW);
    for (const team of ['logged', teamId]) {
      const { status, body } = await call(postern, 'GET', `/requests?team=${team}`);
      expect(status).toBe(200);
      expect(body).toMatchObject({
        data: [{ id, team_id: teamId, outcome: 'completed' }],
        next_cursor: null,
      });
    }
    expect((await call(postern, 'GET', '/requests?team=nobody')).status).toBe(404);
  });

  it('lists calls of a key by its id or prefix', async () => {
    const key = (await call(postern, 'POST', '/keys', { team: 'logged', name: 'ci' })).body;
    const id = await insertRow(postern.database, NOW, { key_id: key.id });
    for (const text of [key.id, key.prefix!]) {
      const { status, body } = await call(postern, 'GET', `/requests?key=${text}`);
      expect(status).toBe(200);
      expect(body.data.map((row) => row.id)).toEqual([id]);
    }
    expect((await call(postern, 'GET', '/requests?key=ptn_00000000')).status).toBe(404);
    expect((await call(postern, 'GET', `/requests?key=${key.key}`)).status).toBe(400);
  });

  it('shows one call by its id', async () => {
    const id = await insertRow(postern.database, NOW, {
      model: 'm/1',
      status: 503,
      outcome: 'upstream_error',
    });
    const { status, body } = await call(postern, 'GET', `/requests/${id}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ id, model: 'm/1', status: 503, outcome: 'upstream_error' });
    expect((await call(postern, 'GET', '/requests?status=5xx&model=m%2F1')).body.data).toEqual([body]);
  });

  it.each(['nonsense', '01890a5d-ac96-774b-bcce-b302099a8057'])('answers 404 for the id %s', async (id) => {
    expect((await call(postern, 'GET', `/requests/${id}`)).status).toBe(404);
  });

  it('shows 50 by default and 500 at most', async () => {
    for (let i = 0; i < 51; i++) await insertRow(postern.database, NOW);
    expect((await call(postern, 'GET', '/requests')).body.data).toHaveLength(50);
    const { status, body } = await call(postern, 'GET', '/requests?limit=500');
    expect(status).toBe(200);
    expect(body.data.length).toBeGreaterThan(50);
    expect((await call(postern, 'GET', '/requests?limit=501')).status).toBe(400);
  });

  it.each([
    ['status=50', 'status'],
    ['status=5x0', 'status'],
    ['status=0xx', 'status'],
    ['status=5XX', 'status'],
    ['outcome=done', 'outcome'],
    ['key=ci', 'key'],
    ['from=yesterday', 'from'],
    ['from=2031-01-01', 'from'],
    ['to=2031-01-01T00:00:00', 'to'],
    ['recorded_after=1', 'recorded_after'],
    ['model=', 'model'],
    ['model=a%00b', 'model'],
    ['model=a&model=b', 'model'],
    ['team[]=default', 'team[]'],
    ['modell=x', 'modell'],
    ['cursor=%27', 'cursor'],
  ])('refuses ?%s and names %s', async (query, field) => {
    const answer = await call(postern, 'GET', `/requests?${query}`);
    expect(answer.status).toBe(400);
    expect(fieldsOf(answer)).toEqual(expect.arrayContaining([field]));
  });
});
