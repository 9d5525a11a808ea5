import { insertRow } from '../request-log/rows.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { call, fieldsOf } from './call.js';

let postern: TestGateway;
let team: string;
let key: string;
beforeAll(async () => {
  postern = await startTestGateway();
  team = (await call(postern, 'POST', '/teams', { name: 'search' })).body.id;
  key = (await call(postern, 'POST', '/keys', { team: 'search', name: 'ci' })).body.id;
  const columns = { team_id: team, key_id: key, prompt_tokens: 5 };
  await insertRow(postern.database, new Date('2031-01-31T12:00:00Z'), columns);
  await insertRow(postern.database, new Date('2031-01-31T13:00:00Z'), { ...columns, status: 500 });
  await insertRow(postern.database, new Date('2031-02-01T00:00:00Z'));
});
afterAll(() => postern.stop());

describe('/admin/v1/usage', () => {
  it('names teams and keys, and shows null for one that is not there', async () => {
    const { status, body } = await call(postern, 'GET', '/usage?group_by=key,team,day');
    expect(status).toBe(200);
    expect(body.data).toMatchObject([
      { day: '2031-02-01', team: null, key: null, calls: 1 },
      {
        day: '2031-01-31',
        team: 'search',
        team_id: team,
        key: 'ci',
        key_id: key,
        calls: 2,
        errors: 1,
        prompt_tokens: 10,
      },
    ]);
    expect(body.next_cursor).toBeNull();
  });

  it('groups by team and day unless told otherwise, filters and pages', async () => {
    const first = (await call(postern, 'GET', '/usage?limit=1')).body;
    expect(first.data).toMatchObject([{ day: '2031-02-01' }]);
    const second = (await call(postern, 'GET', `/usage?limit=1&cursor=${first.next_cursor}`)).body;
    expect(second).toMatchObject({ data: [{ day: '2031-01-31', team: 'search' }], next_cursor: null });
    const filtered = await call(postern, 'GET', '/usage?group_by=hour&team=search&status=5xx');
    expect(filtered.body.data).toMatchObject([{ hour: '2031-01-31T13:00:00Z', calls: 1 }]);
  });

  it.each([
    ['group_by=', 'group_by'],
    ['group_by=week', 'group_by'],
    ['group_by=day,day', 'group_by'],
    ['group_by=day,hour', 'group_by'],
    ['group_by=team;day', 'group_by'],
    ['group_by=team&group_by=day', 'group_by'],
    ['group_by=constructor', 'group_by'],
    ['cursor=x', 'cursor'],
    ['limit=501', 'limit'],
    ['by=team', 'by'],
  ])('refuses ?%s and names %s', async (query, field) => {
    const answer = await call(postern, 'GET', `/usage?${query}`);
    expect(answer.status).toBe(400);
    expect(fieldsOf(answer)).toEqual([field]);
  });
});
