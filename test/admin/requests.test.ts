import { insertRow } from '../request-log/rows.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { call, fieldsOf } from './call.js';

describe('requests', () => {
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
      const { attempts, ...row } = body as typeof body & { attempts: unknown };
      expect(attempts).toEqual([]);
      expect((await call(postern, 'GET', '/requests?status=5xx&model=m%2F1')).body.data).toEqual([row]);
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

    it('lists calls with any of several statuses', async () => {
      const of = async (status: number | null) =>
        insertRow(postern.database, NOW, { model: 'several', status, outcome: 'completed' });
      const ids = [await of(200), await of(400), await of(429), await of(503), await of(null)];
      const found = async (status: string) =>
        (await call(postern, 'GET', `/requests?model=several&status=${status}`)).body.data
          .map(({ id }) => ids.indexOf(id!))
          .sort();
      expect(await found('4xx,5xx')).toEqual([1, 2, 3]);
      expect(await found('200,429')).toEqual([0, 2]);
      expect(await found('429')).toEqual([2]);
      const usage = await call(postern, 'GET', '/usage?group_by=model&model=several&status=4xx,503');
      expect(usage.body.data).toMatchObject([{ calls: 3 }]);
    });

    it('lists calls with a tag, with several, and by the ID of the provider', async () => {
      const prod = await insertRow(postern.database, NOW, {
        tags: { env: 'prod', project: 'a=b' },
        provider_request_id: 'req_one',
      });
      const test = await insertRow(postern.database, NOW, { tags: { env: 'test', project: 'a=b' } });
      const found = async (query: string) =>
        (await call(postern, 'GET', `/requests?${query}`)).body.data.map(({ id }) => id).sort();
      expect(await found('tag=env%3Dprod')).toEqual([prod]);
      expect(await found('tag=project%3Da%3Db')).toEqual([prod, test].sort());
      expect(await found('tag=project%3Da%3Db,env%3Dtest')).toEqual([test]);
      expect(await found('tag=env%3Dpro')).toEqual([]);
      expect(await found('provider_request_id=req_one')).toEqual([prod]);
      const usage = await call(postern, 'GET', '/usage?group_by=team&tag=env%3Dprod');
      expect(usage.body.data).toMatchObject([{ calls: 1 }]);
    });

    it.each([
      ['status=50', 'status'],
      ['status=4xx,', 'status'],
      ['status=4xx&status=5xx', 'status'],
      ['tag=env', 'tag'],
      ['tag=env%3D', 'tag'],
      ['status=5x0', 'status'],
      ['status=0xx', 'status'],
      ['status=5XX', 'status'],
      ['outcome=done', 'outcome'],
      ['failed=1', 'failed'],
      ['min_duration_ms=5s', 'min_duration_ms'],
      ['key=ci', 'key'],
      ['from=yesterday', 'from'],
      ['from=2031-01-01', 'from'],
      ['to=2031-01-01T00:00:00', 'to'],
      ['recorded_after=1', 'recorded_after'],
      ['from=2031-01-02T00:00:00Z&to=2031-01-01T23:59:59Z', 'from'],
      ['model=', 'model'],
      ['model=a%00b', 'model'],
      ['model=a&model=b', 'model'],
      ['team[]=default', 'team[]'],
      ['modell=x', 'modell'],
      ['cursor=%27', 'cursor'],
    ])('rejects ?%s and names %s', async (query, field) => {
      const answer = await call(postern, 'GET', `/requests?${query}`);
      expect(answer.status).toBe(400);
      expect(fieldsOf(answer)).toEqual(expect.arrayContaining([field]));
    });
  });
});

describe('usage', () => {
  let postern: TestGateway;
  let team: string;
  let key: string;
  let prefix: string | null | undefined;
  beforeAll(async () => {
    postern = await startTestGateway();
    team = (await call(postern, 'POST', '/teams', { name: 'search' })).body.id;
    ({ id: key, prefix } = (await call(postern, 'POST', '/keys', { team: 'search', name: 'ci' })).body);
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
          key_prefix: prefix,
          key_id: key,
          calls: 2,
          errors: 1,
          prompt_tokens: 10,
        },
      ]);
      expect(body.next_cursor).toBeNull();
    });

    it('tells keys of one name apart by their team and prefix', async () => {
      const { body } = await call(postern, 'GET', '/usage?group_by=key');
      expect(body.data).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ team: null, key: null, key_prefix: null, calls: 1 }),
          expect.objectContaining({ team: 'search', key: 'ci', key_prefix: prefix, key_id: key, calls: 2 }),
        ]),
      );
      expect(body.data.map((row) => 'team_id' in row)).toEqual([false, false]);
    });

    it('groups by team and day by default, filters and pages', async () => {
      const first = (await call(postern, 'GET', '/usage?limit=1')).body;
      expect(first.data).toMatchObject([{ day: '2031-02-01' }]);
      const second = (await call(postern, 'GET', `/usage?limit=1&cursor=${first.next_cursor}`)).body;
      expect(second).toMatchObject({ data: [{ day: '2031-01-31', team: 'search' }], next_cursor: null });
      const filtered = await call(postern, 'GET', '/usage?group_by=hour&team=search&status=5xx');
      expect(filtered.body.data).toMatchObject([{ hour: '2031-01-31T13:00:00Z', calls: 1 }]);
    });

    it.each([
      ['group_by=', 'group_by'],
      ['group_by=decade', 'group_by'],
      ['group_by=day,day', 'group_by'],
      ['group_by=day,hour', 'group_by'],
      ['group_by=team;day', 'group_by'],
      ['group_by=team&group_by=day', 'group_by'],
      ['group_by=constructor', 'group_by'],
      ['group_by=team,key,provider,model,end_user,session,day,tag:a,tag:b', 'group_by'],
      // Node has these names, Postgres does not.
      ['tz=AET', 'tz'],
      ['tz=US/Pacific-New&group_by=week&status=200', 'tz'],
      ['cursor=x', 'cursor'],
      ['limit=501', 'limit'],
      ['by=team', 'by'],
      ['from=2031-01-02T00:00:00Z&to=2031-01-01T23:59:59Z', 'from'],
    ])('rejects ?%s and names %s', async (query, field) => {
      const answer = await call(postern, 'GET', `/usage?${query}`);
      expect(answer.status).toBe(400);
      expect(fieldsOf(answer)).toEqual([field]);
    });
  });
});
