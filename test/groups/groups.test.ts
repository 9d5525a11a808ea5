import { runHere } from '../cli/run-here.js';
import { insertRow } from '../request-log/rows.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { call, fieldsOf } from '../admin/call.js';

interface Group {
  id: string;
  name: string;
  note: string | null;
  teams: string[];
  version: number;
}
interface Team {
  id: string;
  name: string;
  group: string | null;
  version: number;
}
interface Audit {
  data: { action: string; subject_type: string; subject_name: string; before: object; after: object }[];
}

let postern: TestGateway;
beforeAll(async () => {
  postern = await startTestGateway();
});
afterAll(() => postern.stop());

let names = 0;
const newTeam = (more: object = {}) =>
  postern.admin<Team>('POST', '/teams', { name: `team ${String(++names).padStart(3, '0')}`, ...more });
const newGroup = (teams: string[] = [], more: object = {}) =>
  postern.admin<Group>('POST', '/groups', { name: `group ${++names}`, teams, ...more });
const groupOf = (id: string) => postern.admin<Group>('GET', `/groups/${id}`);
const teamOf = (id: string) => postern.admin<Team>('GET', `/teams/${id}`);
const auditOf = async (id: string) =>
  (await postern.admin<Audit>('GET', `/audit?subject_id=${id}`)).data.map(
    ({ subject_type, action, before, after }) => ({ what: `${subject_type} ${action}`, before, after }),
  );
const countOfLimits = async () => {
  const [row] = await postern.database.query<{ value: string }>(
    "SELECT value FROM change_counter WHERE name = 'limits'",
  );
  return Number(row!.value);
};

describe('a group', () => {
  it('is created with its teams, by name and ID, and found by both', async () => {
    const [one, other] = [await newTeam(), await newTeam()];
    const group = await newGroup([other.id, one.name], { note: 'Shares a budget.' });
    expect(group).toMatchObject({ note: 'Shares a budget.', teams: [one.name, other.name] });
    expect(await groupOf(group.id)).toEqual(group);
    expect(await groupOf(encodeURIComponent(group.name))).toEqual(group);
    expect(await teamOf(one.id)).toMatchObject({ group: group.name, version: 2 });
    const { data } = await postern.admin<{ data: Group[] }>('GET', '/groups');
    expect(data[0]).toEqual(group);
    expect(await postern.admin('GET', `/teams?group=${encodeURIComponent(group.name)}`)).toMatchObject({
      data: [{ name: other.name }, { name: one.name }],
    });
  });

  it.each([
    ['of an empty name', { name: '' }, 400, 'name'],
    ['of a name that looks like an ID', { name: '01890a5d-ac96-774b-bcce-b302099a8057' }, 400, 'name'],
    ['of a name with a gateway key', { name: `ptn_${'a'.repeat(38)}` }, 400, 'name'],
    ['with an unknown team', { name: 'unknown', teams: ['nobody'] }, 404, 'teams'],
    ['with teams that are no list', { name: 'text', teams: 'a,b' }, 400, 'teams'],
    ['with what is unknown', { name: 'surprise', surprise: 1 }, 400, 'surprise'],
  ])('%s is rejected', async (_, body, status, field) => {
    const made = await call(postern, 'POST', '/groups', body);
    expect([made.status, fieldsOf(made)]).toEqual([status, [field]]);
    expect((await call(postern, 'GET', `/groups?search=${body.name.slice(0, 7) || 'x'}`)).body.data).toEqual(
      [],
    );
  });

  it('has each name once, however many ask at the same time', async () => {
    const made = await Promise.all(
      Array.from({ length: 6 }, () => call(postern, 'POST', '/groups', { name: 'wanted' })),
    );
    expect(made.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409, 409]);
  });

  it('takes a team out of its other group; both change, and so does the team', async () => {
    const team = await newTeam();
    const from = await newGroup([team.id]);
    const to = await newGroup();
    const before = await countOfLimits();
    expect(await postern.admin('PATCH', `/groups/${to.id}`, { teams: [team.id] })).toMatchObject({
      teams: [team.name],
    });
    expect(await countOfLimits()).toBe(before + 1);
    const left = await groupOf(from.id);
    expect(left.teams).toEqual([]);
    expect(left.version).toBeGreaterThan(from.version);
    expect((await auditOf(team.id))[0]).toEqual({
      what: 'team changed',
      before: { group: from.name },
      after: { group: to.name },
    });
    expect((await auditOf(to.id))[0]).toEqual({
      what: 'group changed',
      before: { teams: [] },
      after: { teams: [team.name] },
    });
  });

  it('loses the teams that a change does not name, and keeps them if it names none at all', async () => {
    const [one, other] = [await newTeam(), await newTeam()];
    const group = await newGroup([one.id, other.id]);
    expect(await postern.admin('PATCH', `/groups/${group.id}`, { note: 'kept' })).toMatchObject({
      note: 'kept',
      teams: [one.name, other.name],
    });
    expect(await postern.admin('PATCH', `/groups/${group.id}`, { teams: [other.name] })).toMatchObject({
      teams: [other.name],
    });
    expect(await teamOf(one.id)).toMatchObject({ group: null });
    const changes = await auditOf(group.id);
    // Nothing differs: nothing is recorded.
    await postern.admin('PATCH', `/groups/${group.id}`, { teams: [other.id], note: 'kept' });
    expect(await auditOf(group.id)).toEqual(changes);
  });

  it('that a team has joined meanwhile is not changed with If-Match of before', async () => {
    const [one, other] = [await newTeam(), await newTeam()];
    const { id } = await newGroup([one.id]);
    const etag = (await call(postern, 'GET', `/groups/${id}`)).headers.get('etag')!;
    await postern.admin('PATCH', `/teams/${other.id}`, { group: id });
    const late = await call(postern, 'PATCH', `/groups/${id}`, { teams: [one.id] }, { 'if-match': etag });
    expect([late.status, fieldsOf(late)]).toEqual([409, ['version']]);
    expect((await groupOf(id)).teams).toEqual([one.name, other.name]);
  });

  it('with teams is not removed, and without is, which the audit log records', async () => {
    const team = await newTeam();
    const group = await newGroup([team.id]);
    const kept = await call(postern, 'DELETE', `/groups/${group.id}`);
    expect([kept.status, kept.body.error.message]).toEqual([
      409,
      `teams: this group has the teams ${team.name}; take them out of it first, with "teams": []`,
    ]);
    await postern.admin('PATCH', `/teams/${team.id}`, { group: null });
    const removed = await fetch(`${postern.url}/admin/v1/groups/${group.id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    expect(removed.status).toBe(204);
    expect((await auditOf(group.id))[0]).toMatchObject({ what: 'group removed', after: null });
    expect((await call(postern, 'GET', `/groups/${group.id}`)).status).toBe(404);
  });

  it('and another exchange their teams at the same time without a deadlock', async () => {
    const teams = await Promise.all(Array.from({ length: 4 }, () => newTeam()));
    const groups = await Promise.all(Array.from({ length: 3 }, () => newGroup()));
    const change = (i: number) => {
      const group = groups[i % 3]!;
      const picked = [teams[i % 4]!, teams[(i * 3 + 1) % 4]!].map(({ id }) => id);
      if (i % 4 === 0) return call(postern, 'PATCH', `/teams/${picked[0]}`, { group: group.id });
      if (i % 4 === 1)
        return call(postern, 'PATCH', `/teams/${picked[0]}`, {
          group: group.name,
          budgets: [{ usd: String(i), period: 'day' }],
        });
      if (i % 4 === 2)
        return call(postern, 'PATCH', `/teams/${picked[0]}`, {
          budgets: [{ usd: String(i), period: 'day' }],
        });
      return call(postern, 'PATCH', `/groups/${group.id}`, { teams: picked, note: `note ${i}` });
    };
    const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => change(i)));
    // 409: a team joined between two locks of a change, which asks for a repetition. A deadlock gets 503.
    expect(answers.map(({ status }) => status).filter((status) => ![200, 409].includes(status))).toEqual([]);
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(30);
    const shown = await Promise.all(groups.map(({ id }) => groupOf(id)));
    for (const { name, id } of teams) {
      const { group } = await teamOf(id);
      expect(shown.filter(({ teams }) => teams.includes(name)).map((one) => one.name)).toEqual(
        group === null ? [] : [group],
      );
    }
  });
});

describe('limits of a group', () => {
  it('are created and changed with it, audited, and removed with it', async () => {
    const team = await newTeam();
    const budget = { usd: '100', period: 'day', alert_at: [80, 100] };
    const group = await newGroup([team.id], { budgets: [budget], limits: { requests_per_minute: 60 } });
    const before = await countOfLimits();
    expect(group).toMatchObject({
      limits: { requests_per_minute: 60 },
      budgets: [{ usd: '100.00', alert_at: [80, 100], unpriced: 'allow' }],
      each_session: null,
    });
    const changed = await postern.admin<Group>('PATCH', `/groups/${group.id}`, {
      limits: null,
      each_session: { budgets: [{ usd: '5', period: 'session' }] },
    });
    expect(changed).toMatchObject({
      ...{ limits: null, budgets: [{ usd: '100.00' }], teams: [team.name] },
      each_session: { budgets: [{ usd: '5.00' }] },
    });
    expect(changed.version).toBeGreaterThan(group.version);
    expect(await countOfLimits()).toBeGreaterThan(before);
    expect((await auditOf(group.id))[0]).toMatchObject({
      what: 'group changed',
      before: { limits: { requests_per_minute: 60 }, each_session: null },
      after: { limits: null, each_session: { budgets: [{ usd: '5.00' }] } },
    });
    expect(await postern.admin('GET', `/limits?scope=group`)).toMatchObject({
      data: [
        { group: group.name, team: null },
        { group: group.name, amount: '100.00' },
      ],
    });
    await postern.admin('PATCH', `/groups/${group.id}`, { teams: [] });
    await fetch(`${postern.url}/admin/v1/groups/${group.id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    expect(await postern.admin('GET', `/limits?scope=group`)).toMatchObject({ data: [] });
  });

  it('count what its teams have used since the day began, also the one that joins with the budget', async () => {
    const team = await newTeam();
    await insertRow(postern.database, new Date(), { team_id: team.id, cost_usd: '2', charge_usd: '2' });
    const group = await newGroup();
    await postern.admin('PATCH', `/groups/${group.id}`, {
      teams: [team.id],
      budgets: [{ usd: '100', period: 'day' }],
    });
    const { data } = await postern.admin<{ data: { group: string; used: string }[] }>(
      'GET',
      '/limits?scope=group',
    );
    expect(data.find((limit) => limit.group === group.name)).toMatchObject({ used: '2.00' });
    await postern.admin('PATCH', `/groups/${group.id}`, { budgets: [] });
  });

  it('and of all calls are shown to the holder of a key without amounts', async () => {
    const team = await newTeam();
    const group = await newGroup([team.id], { budgets: [{ usd: '0', period: 'day' }] });
    await newGroup([], { budgets: [{ usd: '777777777', period: 'day' }] });
    await postern.admin('PATCH', '/limits/installation', { budgets: [{ usd: '888888888', period: 'week' }] });
    const { key } = await postern.admin<{ key: string }>('POST', '/keys', { team: team.id, name: 'own' });
    const response = await fetch(`${postern.url}/self/v1/key`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const shown = (await response.json()) as { limits: object[]; shared_limits: object[] };
    const shared = {
      resource: 'usd',
      providers: null,
      models: null,
      resets_at: expect.any(String) as string,
    };
    expect(shown.limits).toEqual([]);
    expect(shown.shared_limits).toEqual([
      { ...shared, scope: 'group', period: 'day', blocking: true },
      { ...shared, scope: 'installation', period: 'week', blocking: false },
    ]);
    expect(JSON.stringify(shown)).not.toMatch(/777777777|888888888|amount/);
    await postern.admin('PATCH', '/limits/installation', { budgets: [] });
    await postern.admin('PATCH', `/groups/${group.id}`, { budgets: [] });
  });

  it('are not seen by its members', async () => {
    const team = await newTeam();
    const group = await newGroup([team.id], { budgets: [{ usd: '100', period: 'day' }] });
    const { token } = await postern.admin<{ token: string }>('POST', '/tokens', {
      ...{ name: `member ${++names}`, role: 'team', teams: [team.id] },
    });
    const seen = await call(postern, 'GET', '/limits', undefined, { authorization: `Bearer ${token}` });
    expect([seen.status, seen.body.data]).toEqual([200, []]);
    await postern.admin('PATCH', `/groups/${group.id}`, { budgets: null });
  });
});

describe('a team', () => {
  it('is created in a group, moves, and leaves it with null', async () => {
    const [from, to] = [await newGroup(), await newGroup()];
    const before = await countOfLimits();
    const team = await newTeam({ group: from.name });
    expect(team.group).toBe(from.name);
    expect(await countOfLimits()).toBe(before + 1);
    const { version } = await groupOf(from.id);
    expect(version).toBe(from.version + 1);
    expect(await postern.admin('PATCH', `/teams/${team.id}`, { group: to.id })).toMatchObject({
      group: to.name,
      version: 2,
    });
    // The same group is no change.
    expect(await postern.admin('PATCH', `/teams/${team.id}`, { group: to.name })).toMatchObject({
      version: 2,
    });
    expect(await postern.admin('PATCH', `/teams/${team.id}`, { group: null })).toMatchObject({ group: null });
    expect((await groupOf(to.id)).teams).toEqual([]);
  });

  it.each([
    ['POST', '/teams', { name: 'of no group', group: 'nobody' }],
    ['PATCH', '/teams/default', { group: 'nobody' }],
  ])('is not put into an unknown group: %s %s', async (method, path, body) => {
    const answer = await call(postern, method, path, body);
    expect([answer.status, fieldsOf(answer)]).toEqual([404, ['group']]);
  });

  it('that a process of the version before creates is in no group', async () => {
    await postern.database.query("INSERT INTO team (id, name) VALUES (gen_random_uuid(), 'of before')");
    expect(await teamOf('of%20before')).toMatchObject({ group: null });
  });

  it('is not put into a group by its lead, who sees the name of the group', async () => {
    const team = await newTeam();
    const group = await newGroup([team.id]);
    const { token } = await postern.admin<{ token: string }>('POST', '/tokens', {
      name: `lead ${++names}`,
      role: 'lead',
      teams: [team.id],
    });
    const authorization = `Bearer ${token}`;
    const shown = await call(postern, 'GET', `/teams/${team.id}`, undefined, { authorization });
    expect(shown.body).toMatchObject({ group: group.name });
    const changed = await call(postern, 'PATCH', `/teams/${team.id}`, { group: null }, { authorization });
    expect([changed.status, fieldsOf(changed)]).toEqual([403, ['group']]);
  });
});

describe('calls', () => {
  const day = new Date(Date.now() - 3_600_000);
  let group: Group;
  const teams: Team[] = [];
  beforeAll(async () => {
    for (let i = 0; i < 3; i++) teams.push(await newTeam());
    group = await newGroup([teams[0]!.id, teams[1]!.id]);
    for (const [i, { id }] of teams.entries())
      await insertRow(postern.database, day, { team_id: id, cost_usd: String(i + 1), model: `m${i}` });
  });

  it('are added up by the present group of their team, in usage, as a table and in the view', async () => {
    const usage = () =>
      postern.admin<{ data: { group: string | null; calls: number; cost_usd: string }[] }>(
        'GET',
        '/usage?group_by=group',
      );
    expect((await usage()).data).toContainEqual(
      expect.objectContaining({ group: group.name, calls: 2, cost_usd: '3.000000000' }),
    );
    const [row] = await postern.database.query(
      'SELECT calls, cost_usd FROM usage_by_group_day WHERE team_group = $1',
      [group.name],
    );
    expect(row).toEqual({ calls: '2', cost_usd: '3.000000000' });
    const table = await fetch(`${postern.url}/admin/v1/usage/export?group_by=group,team`, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    expect((await table.text()).split('\n')[0]).toMatch(/^time_zone,from,to,group,team,team_id,cost_usd/);
    // A team that joins brings its calls.
    await postern.admin('PATCH', `/teams/${teams[2]!.id}`, { group: group.id });
    expect((await usage()).data).toContainEqual(
      expect.objectContaining({ group: group.name, calls: 3, cost_usd: '6.000000000' }),
    );
    await postern.admin('PATCH', `/teams/${teams[2]!.id}`, { group: null });
    expect((await usage()).data).toContainEqual(expect.objectContaining({ group: null, calls: 1 }));
  });

  it.each(['sum of rows', 'list'])('of a group alone: %s', async (what) => {
    const filter = `group=${encodeURIComponent(group.name)}`;
    if (what === 'list') {
      const { data } = await postern.admin<{ data: { model: string }[] }>('GET', `/requests?${filter}`);
      expect(data.map(({ model }) => model).sort()).toEqual(['m0', 'm1']);
      return;
    }
    // From the half-hourly sums, and from the rows.
    for (const more of ['', '&outcome=completed'])
      expect(await postern.admin('GET', `/usage?group_by=team&${filter}${more}`)).toMatchObject({
        totals: { calls: 2, cost_usd: '3.000000000' },
      });
    const unknown = await call(postern, 'GET', '/usage?group=nobody');
    expect([unknown.status, fieldsOf(unknown)]).toEqual([404, ['group']]);
  });

  it('have pages of groups, also by cost', async () => {
    for (const sort of ['', '&sort=cost']) {
      const seen: (string | null)[] = [];
      let cursor = '';
      do {
        const page = await postern.admin<{ data: { group: string | null }[]; next_cursor: string | null }>(
          'GET',
          `/usage?group_by=group&limit=1${sort}${cursor}`,
        );
        seen.push(...page.data.map(({ group }) => group));
        cursor = page.next_cursor === null ? '' : `&cursor=${page.next_cursor}`;
      } while (cursor !== '');
      expect(seen).toEqual(expect.arrayContaining([group.name, null]));
      expect(new Set(seen).size).toBe(seen.length);
    }
  });

  it('of a statement name the group of the team', async () => {
    const month = day.toISOString().slice(0, 7);
    const query = `team=${teams[0]!.id}&month=${month}`;
    expect(await postern.admin('GET', `/usage/statement?${query}`)).toMatchObject({ group: group.name });
    const { stdout } = await cli(
      'usage',
      'statement',
      '--team',
      teams[0]!.name,
      '--month',
      month,
      '--format',
      'csv',
    );
    expect(stdout).toMatch(/^owner,cost_center,contact,group,/);
    expect(stdout.split('\n')[1]).toMatch(new RegExp(`^,,,${group.name},`));
  });
});

const cli = (...args: string[]) =>
  runHere(args, { POSTERN_URL: postern.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN });

describe('postern groups', () => {
  it('creates, lists, shows, changes and deletes', async () => {
    const [one, other] = [await newTeam(), await newTeam()];
    const made = await cli(
      'groups',
      'create',
      'dev',
      '--teams',
      `${one.name},${other.name}`,
      '--note',
      'A note.',
    );
    expect(made).toMatchObject({ code: 0, stderr: '' });
    expect(made.stdout).toMatch(
      new RegExp(`^Created group dev \\(.*\\) with the teams ${one.name}, ${other.name}\\.`),
    );
    expect((await cli('groups', 'list', '--name', 'dev')).stdout).toMatch(
      new RegExp(`^NAME +TEAMS +NOTE .*\\ndev +${one.name}, ${other.name} +A note\\.`),
    );
    expect((await cli('groups', 'show', 'dev')).stdout).toMatch(/^id .*\nname +dev\nteams +team /);
    expect((await cli('groups', 'update', 'dev', '--remove-team', one.name)).stdout).toMatch(
      new RegExp(`the teams ${other.name}\\.`),
    );
    expect((await cli('groups', 'update', 'dev', '--add-team', one.name, '--name', 'dev 2')).stdout).toMatch(
      new RegExp(`group dev 2 .*the teams ${one.name}, ${other.name}\\.`),
    );
    expect((await cli('teams', 'list', '--group', 'dev 2')).stdout).toMatch(/GROUP[^]*dev 2[^]*dev 2/);
    expect((await cli('teams', 'show', one.name)).stdout).toMatch(/\ngroup +dev 2\n/);
    expect(await cli('groups', 'delete', 'dev 2', '--yes')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('take them out of it first') as string,
    });
    await cli('teams', 'update', one.name, '--group', 'none');
    expect((await cli('groups', 'update', 'dev 2', '--teams', 'none', '--note', 'none')).stdout).toMatch(
      /no teams\./,
    );
    expect(await cli('groups', 'delete', 'dev 2', '--yes')).toMatchObject({
      code: 0,
      stdout: 'Deleted group dev 2.\n',
    });
  });

  it.each([
    [['update', 'cli'], 'nothing to change'],
    [['update', 'cli', '--teams', 'a', '--add-team', 'b'], 'give either --teams'],
    [['update', 'cli', '--remove-team', 'default'], 'team default is not in group cli'],
    [['show', 'nobody'], 'no group has this name or id'],
  ])('says what is wrong with %j', async (args, message) => {
    await call(postern, 'POST', '/groups', { name: 'cli' });
    expect(await cli('groups', ...args)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(message) as string,
    });
  });

  it('is a group of usage and a filter of requests', async () => {
    const team = await newTeam();
    const { name } = await newGroup([team.id]);
    await insertRow(postern.database, new Date(), { team_id: team.id, model: 'of-a-group' });
    expect((await cli('usage', '--group-by', 'group', '--group', name)).stdout).toMatch(
      new RegExp(`^GROUP .*\\n${name} +1 `),
    );
    expect((await cli('requests', 'list', '--group', name)).stdout).toMatch(/of-a-group/);
    expect((await cli('teams', 'create', 'made in a group', '--group', name)).code).toBe(0);
    expect(await teamOf('made%20in%20a%20group')).toMatchObject({ group: name });
  });
});
