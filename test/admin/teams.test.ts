import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { call, fieldsOf } from './call.js';

let postern: TestGateway;
beforeAll(async () => {
  postern = await startTestGateway();
});
afterAll(() => postern.stop());

describe('/admin/v1/teams', () => {
  it('makes a team and lists it first', async () => {
    const made = await call(postern, 'POST', '/teams', { name: 'Suche & Co. 検索' });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/) as string,
      name: 'Suche & Co. 検索',
      disabled: false,
      group: null,
      models: null,
      stream_usage: 'as_sent',
      providers: null,
      default_provider: null,
      limits: null,
      budgets: [],
      filtered_limits: [],
      each_session: null,
      each_end_user: null,
      owner: null,
      contact: null,
      cost_center: null,
      note: null,
      self_service: null,
      sign_in: null,
      claude_code: null,
      version: 1,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    });
    const { status, body } = await call(postern, 'GET', '/teams');
    expect(status).toBe(200);
    expect(body.data[0]).toEqual(made.body);
    expect(body.data.at(-1)).toMatchObject({ name: 'default' });
    expect(body.next_cursor).toBeNull();
  });

  it('has each name once, however many ask at the same time', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => call(postern, 'POST', '/teams', { name: 'wanted' })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array<number>(7).fill(409)]);
    const rejected = answers.find(({ status }) => status === 409)!;
    expect(rejected.body.error).toMatchObject({ code: 'conflict', details: [{ field: 'name' }] });
  });

  it.each([
    undefined,
    '',
    ' ',
    ' a',
    'a\n',
    'nul\0',
    'rtl\u202e',
    '\ud800',
    'x'.repeat(101),
    7,
    null,
    ['a'],
    `mine ptn_${'a'.repeat(38)}`,
    '01890a5d-ac96-774b-bcce-b302099a8057',
  ])('does not call a team %j', async (name) => {
    const answer = await call(postern, 'POST', '/teams', { name });
    expect(answer.status).toBe(400);
    expect(fieldsOf(answer)).toEqual(expect.arrayContaining(['name']));
    expect(answer.body.error.message).toMatch(/^name: must /);
  });

  it('pages with limit and cursor', async () => {
    for (let i = 0; i < 3; i++) await call(postern, 'POST', '/teams', { name: `page ${i}` });
    const one = (await call(postern, 'GET', '/teams?limit=2')).body;
    const two = (await call(postern, 'GET', `/teams?limit=2&cursor=${one.next_cursor}`)).body;
    const names = [...one.data, ...two.data].map(({ name }) => name);
    expect(names.slice(0, 3)).toEqual(['page 2', 'page 1', 'page 0']);
    expect(new Set(names).size).toBe(4);
  });
});
