import { runHere } from '../cli/run-here.js';
import { insertRow } from '../request-log/rows.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { call, fieldsOf } from './call.js';

/** Markup, a formula, quotes: text that something might run. */
const HOSTILE = '=HYPERLINK("https://x.example")<img src=x onerror=alert(1)>\'; DROP TABLE team --';

interface Shown {
  id: string;
  owner: string | null;
  contact: string | null;
  cost_center: string | null;
  note: string | null;
}
interface Page {
  data: (Shown & { name: string })[];
}
interface Usage {
  data: { owner?: string | null; cost_center: string | null; team?: string; calls: number }[];
  totals: { calls: number } | null;
  next_cursor: string | null;
}

let postern: TestGateway;
beforeAll(async () => {
  postern = await startTestGateway();
});
afterAll(() => postern.stop());

const cli = (...args: string[]) =>
  runHere(args, { POSTERN_URL: postern.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN });
const names = async (path: string) =>
  (await postern.admin<Page>('GET', path)).data.map(({ name }) => name).sort();

describe.each([
  ['team', '/teams', {}],
  ['key', '/keys', { team: 'default' }],
] as const)('a %s', (type, path, more) => {
  const all = {
    owner: 'ada@example.com',
    contact: '#search-oncall',
    cost_center: 'CC-1',
    note: `First line.\n${HOSTILE}`,
  };

  it('has none at first, and those that it is created with', async () => {
    const { id: bare } = await postern.admin<Shown>('POST', path, { name: `bare ${type}`, ...more });
    expect(await postern.admin('GET', `${path}/${bare}`)).toMatchObject({
      owner: null,
      contact: null,
      cost_center: null,
      note: null,
    });
    const { id } = await postern.admin<Shown>('POST', path, { name: `noted ${type}`, ...more, ...all });
    expect(await postern.admin('GET', `${path}/${id}`)).toMatchObject(all);
  });

  it('keeps what a change does not name, clears with null, and is audited', async () => {
    const { id } = await postern.admin<Shown>('POST', path, { name: `changed ${type}`, ...more, ...all });
    const changed = { note: null, cost_center: HOSTILE };
    expect(await postern.admin('PATCH', `${path}/${id}`, changed)).toMatchObject({ ...all, ...changed });
    expect(await postern.admin('GET', `/audit?subject_id=${id}&action=changed`)).toMatchObject({
      data: [{ before: { note: all.note, cost_center: 'CC-1' }, after: changed }],
    });
    // Nothing differs: nothing is recorded.
    await postern.admin('PATCH', `${path}/${id}`, changed);
    const { data } = await postern.admin<{ data: object[] }>('GET', `/audit?subject_id=${id}&action=changed`);
    expect(data).toHaveLength(1);
  });

  it.each([
    ['owner', 'that is empty', ''],
    ['owner', 'with a gateway key', `ptn_${'a'.repeat(38)}`],
    ['contact', 'that is empty', ''],
    ['contact', 'with a space at its start', ' jane'],
    ['contact', 'of two lines', 'a\nb'],
    ['contact', 'of 201 characters', 'x'.repeat(201)],
    ['contact', 'that is no text', 7],
    ['cost_center', 'of 201 characters', 'x'.repeat(201)],
    ['cost_center', 'that runs backwards', 'rtl\u202e'],
    ['cost_center', 'with a gateway key', `ptn_${'a'.repeat(38)}`],
    ['note', 'of 2,001 characters', 'x'.repeat(2_001)],
    ['note', 'with NUL', 'nul\0'],
    ['note', 'that steers a terminal', '\u001b[2J'],
    ['note', 'of nothing but spaces', ' \n '],
    ['note', 'with a gateway key', `see ptn_${'a'.repeat(38)}`],
  ])('rejects a %s %s', async (name, _, value) => {
    const made = await call(postern, 'POST', path, { name: `rejected ${type}`, ...more, [name]: value });
    expect([made.status, fieldsOf(made)]).toEqual([400, [name]]);
  });

  it('takes as many characters as it says', async () => {
    const longest = { contact: '界'.repeat(200), cost_center: 'x'.repeat(200), note: '😀'.repeat(2_000) };
    const made = await call(postern, 'POST', path, { name: `long ${type}`, ...more, ...longest });
    expect([made.status, made.body]).toEqual([201, expect.objectContaining(longest)]);
  });
});

describe('lists', () => {
  beforeAll(async () => {
    await postern.admin('POST', '/teams', {
      name: 'charged',
      cost_center: 'CC-9',
      contact: 'ada',
      owner: 'ann',
    });
    await postern.admin('POST', '/keys', { team: 'charged', name: 'inherits' });
    const own = { cost_center: 'CC-own', contact: 'bob', owner: 'ben' };
    await postern.admin('POST', '/keys', { team: 'charged', name: 'its own', ...own });
    await postern.admin('POST', '/teams', { name: 'not charged' });
    await postern.admin('POST', '/keys', { team: 'not charged', name: 'free' });
  });

  it('are filtered; keys by those of their team, unless they have their own', async () => {
    expect(await names('/teams?cost_center=CC-9')).toEqual(['charged']);
    expect(await names('/teams?contact=ada')).toEqual(['charged']);
    expect(await names('/teams?contact=ad')).toEqual([]);
    expect(await names('/teams?owner=ann')).toEqual(['charged']);
    expect(await names('/teams?owner=ben')).toEqual([]);
    expect(await names('/keys?owner=ann')).toEqual(['inherits']);
    expect(await names('/keys?owner=ben')).toEqual(['its own']);
    expect(await names('/keys?owner=ben&sort=name')).toEqual(['its own']);
    expect(await names('/keys?search=ann')).toEqual(['inherits']);
    expect(await names('/keys?cost_center=CC-9')).toEqual(['inherits']);
    expect(await names('/keys?cost_center=CC-own')).toEqual(['its own']);
    expect(await names('/keys?contact=ada&team=charged')).toEqual(['inherits']);
    expect(await names('/keys?contact=ada&cost_center=CC-own')).toEqual([]);
  });

  it('page with the filter', async () => {
    for (const name of ['one', 'two', 'three']) {
      await postern.admin('POST', '/teams', { name: `paged ${name}`, cost_center: 'paged' });
    }
    const first = await postern.admin<Page & { next_cursor: string }>(
      'GET',
      '/teams?cost_center=paged&limit=2',
    );
    expect(first.data.map(({ name }) => name)).toEqual(['paged three', 'paged two']);
    expect(await names(`/teams?cost_center=paged&limit=2&cursor=${first.next_cursor}`)).toEqual([
      'paged one',
    ]);
  });
});

describe('usage by cost center', () => {
  const ids: Record<string, string> = {};
  beforeAll(async () => {
    for (const team of ['charged', 'not charged']) {
      const { data } = await postern.admin<Page>('GET', `/keys?team=${encodeURIComponent(team)}`);
      const { id: teamId } = await postern.admin<Shown>('GET', `/teams/${encodeURIComponent(team)}`);
      for (const { id, name } of data) {
        ids[name] = id;
        const calls = { inherits: 3, 'its own': 2, free: 1 }[name]!;
        for (let i = 0; i < calls; i++)
          await insertRow(postern.database, new Date(), { team_id: teamId, key_id: id, cost_usd: '0.5' });
      }
    }
  });
  const usage = (query: string) => postern.admin<Usage>('GET', `/usage?${query}`);

  it('counts a key for its own, else for that of its team; the others for none', async () => {
    const { data, totals } = await usage('group_by=cost_center');
    expect(data.map(({ cost_center, calls }) => [cost_center, calls])).toEqual([
      ['CC-9', 3],
      ['CC-own', 2],
      [null, 1],
    ]);
    expect(totals).toMatchObject({ calls: 6, cost_usd: '3.000000000' });
  });

  it('counts by owner in the same way, also beside the cost center and in a table', async () => {
    const { data, totals } = await usage('group_by=owner,cost_center&sort=calls');
    expect(data.map(({ owner, cost_center, calls }) => [owner, cost_center, calls])).toEqual([
      ['ann', 'CC-9', 3],
      ['ben', 'CC-own', 2],
      [null, null, 1],
    ]);
    expect(totals).toMatchObject({ calls: 6, cost_usd: '3.000000000' });
    const table = await fetch(`${postern.url}/admin/v1/usage/export?group_by=owner`, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    const [head, ...lines] = (await table.text()).trimEnd().split('\n');
    expect(head).toMatch(/^time_zone,from,to,owner,cost_usd,/);
    expect(lines.map((line) => line.split(',').slice(3, 5))).toEqual([
      ['ann', '1.500000000'],
      ['ben', '1.000000000'],
      ['', '0.500000000'],
    ]);
  });

  it('pages, sorted by a sum or not, and beside other groups', async () => {
    for (const sort of ['', '&sort=calls', '&sort=cost']) {
      const found: (string | null)[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const next: Usage = await usage(
          `group_by=cost_center${sort}&limit=1${cursor && `&cursor=${cursor}`}`,
        );
        found.push(...next.data.map(({ cost_center }) => cost_center));
        cursor = next.next_cursor;
      }
      expect(found).toEqual(['CC-9', 'CC-own', null]);
    }
    const { data } = await usage('group_by=team,cost_center&sort=calls');
    expect(data.map(({ team, cost_center, calls }) => [team, cost_center, calls])).toEqual([
      ['charged', 'CC-9', 3],
      ['charged', 'CC-own', 2],
      ['not charged', null, 1],
    ]);
  });

  it('is the same from the rows of the log, with a filter that only they have', async () => {
    const { data } = await usage('group_by=cost_center,end_user&status=200');
    expect(data.map(({ cost_center, calls }) => [cost_center, calls])).toEqual([
      ['CC-9', 3],
      ['CC-own', 2],
      [null, 1],
    ]);
  });

  it('and by owner filters calls, from sums and rows, the list, the export and the command line', async () => {
    for (const [filter, key, calls] of [
      ['owner=ann', 'inherits', 3],
      ['cost_center=CC-own', 'its own', 2],
      ['owner=ben&cost_center=CC-own', 'its own', 2],
    ] as const) {
      for (const groups of ['key', 'key,end_user']) {
        const { data, totals } = await usage(`group_by=${groups}&${filter}`);
        expect([filter, groups, data.map((row) => row.calls), totals?.calls]).toEqual([
          filter,
          groups,
          [calls],
          calls,
        ]);
      }
      const list = await postern.admin<{ data: { key_id: string }[] }>('GET', `/requests?${filter}`);
      expect(list.data.map(({ key_id }) => key_id)).toEqual(Array(calls).fill(ids[key]));
      const exported = await fetch(`${postern.url}/admin/v1/requests/export?${filter}`, {
        headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
      });
      expect((await exported.text()).trimEnd().split('\n')).toHaveLength(calls);
    }
    for (const filter of ['owner=ann&cost_center=CC-own', 'owner=nobody']) {
      expect((await postern.admin<Page>('GET', `/requests?${filter}`)).data).toEqual([]);
      expect((await usage(`group_by=key&${filter}`)).data).toEqual([]);
    }
    const { stdout } = await cli('usage', '--group-by', 'key', '--owner', 'ben', '--cost-center', 'CC-own');
    expect(stdout).toMatch(/\ncharged\/its own +ptn_\S+ +2 /);
  });

  it('follows a change at once, also for earlier calls', async () => {
    await postern.admin('PATCH', `/keys/${ids['its own']}`, { cost_center: null });
    const { data } = await usage('group_by=cost_center');
    expect(data.map(({ cost_center, calls }) => [cost_center, calls])).toEqual([
      ['CC-9', 5],
      [null, 1],
    ]);
    await postern.admin('PATCH', `/keys/${ids['its own']}`, { cost_center: 'CC-own' });
  });

  it('shows a member those of its own teams only', async () => {
    const body = { name: 'member', role: 'team', teams: ['not charged'] };
    const { token } = await postern.admin<{ token: string }>('POST', '/tokens', body);
    const response = await fetch(`${postern.url}/admin/v1/usage?group_by=cost_center`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(((await response.json()) as Usage).data).toMatchObject([{ cost_center: null, calls: 1 }]);
  });
});

const asMember = (token: string, method: string, path: string, body: object) =>
  fetch(`${postern.url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

describe('a key of a member', () => {
  it('has none of their choice', async () => {
    await postern.admin('POST', '/teams', { name: 'open', self_service: { keys_per_user: 2, max_days: 30 } });
    const member = { name: 'self-service', role: 'team', teams: ['open'] };
    const { token } = await postern.admin<{ token: string }>('POST', '/tokens', member);
    for (const more of [{ cost_center: 'somebody else' }, { owner: 'somebody else' }]) {
      const response = await asMember(token, 'POST', '/keys', { team: 'open', name: 'mine', ...more });
      expect(response.status).toBe(403);
    }
  });

  it('has the member as its owner, which nobody changes; a name noted as owner is no right', async () => {
    const member = { name: 'noted', role: 'team', teams: ['open'] };
    const { token } = await postern.admin<{ token: string }>('POST', '/tokens', member);
    const made = await asMember(token, 'POST', '/keys', { team: 'open', name: 'of noted' });
    const own = (await made.json()) as Shown;
    expect(own).toMatchObject({ owner: 'token:noted', self_service: true });
    const changed = await call(postern, 'PATCH', `/keys/${own.id}`, { owner: 'somebody else' });
    expect([changed.status, fieldsOf(changed)]).toEqual([400, ['owner']]);
    // The file of an administrator may name the key without saying whose it is.
    const file = { keys: [{ team: 'open', name: 'of noted', note: 'by file' }] };
    await postern.admin('POST', '/apply', { document: file });
    expect(await postern.admin('GET', `/keys/${own.id}`)).toMatchObject({
      owner: 'token:noted',
      note: 'by file',
    });

    const { id } = await postern.admin<Shown>('POST', '/keys', {
      team: 'open',
      name: 'of administrators',
      owner: 'token:noted',
    });
    expect(await postern.admin('GET', `/keys/${id}`)).toMatchObject({
      owner: 'token:noted',
      self_service: false,
      owner_id: null,
    });
    for (const action of ['rotate', 'revoke']) {
      expect((await asMember(token, 'POST', `/keys/${id}/${action}`, {})).status).toBe(403);
    }
    expect((await asMember(token, 'POST', `/keys/${own.id}/revoke`, {})).status).toBe(200);
  });
});

it('the holder of a key does not see them', async () => {
  const body = { team: 'charged', name: 'holder', note: 'between administrators', contact: 'secret-contact' };
  const { key } = await postern.admin<{ key: string }>('POST', '/keys', body);
  const response = await fetch(`${postern.url}/self/v1/key`, { headers: { authorization: `Bearer ${key}` } });
  expect(response.status).toBe(200);
  expect(await response.text()).not.toMatch(/between administrators|secret-contact/);
});

describe('on the command line', () => {
  it('are set, shown, listed, cleared, and grouped by', async () => {
    const options = [
      '--owner',
      'ann',
      '--contact',
      'ada@example.com',
      '--cost-center',
      'CC-77',
      '--note',
      'one\ntwo',
    ];
    expect((await cli('teams', 'create', 'by cli', ...options)).code).toBe(0);
    expect(
      (
        await cli(
          'keys',
          'create',
          '--team',
          'by cli',
          '--name',
          'batch',
          '--owner',
          'ben',
          '--contact',
          'eve',
        )
      ).code,
    ).toBe(0);
    expect((await cli('teams', 'show', 'by cli')).stdout).toMatch(
      /owner +ann\ncontact +ada@example\.com\ncost center +CC-77\nnote +one\n +two\n/,
    );
    expect((await cli('keys', 'show', 'by cli/batch')).stdout).toMatch(/owner +ben\ncontact +eve\n/);
    const teams = await cli('teams', 'list', '--cost-center', 'CC-77');
    expect(teams.stdout).toMatch(
      /^NAME +STATUS +OWNER +CONTACT +COST CENTER +CREATED.*\nby cli +active +ann +ada@example\.com +CC-77 /,
    );
    expect((await cli('keys', 'list', '--cost-center', 'CC-77')).stdout).toContain('by cli/batch');
    expect((await cli('keys', 'list', '--owner', 'ben', '--team', 'by cli')).stdout).toContain(
      'by cli/batch',
    );
    expect((await cli('teams', 'update', 'by cli', '--note', 'none', '--contact', 'none')).code).toBe(0);
    expect(JSON.parse((await cli('teams', 'show', 'by cli', '--json')).stdout)).toMatchObject({
      contact: null,
      cost_center: 'CC-77',
      note: null,
    });
    expect((await cli('keys', 'update', 'by cli/batch', '--cost-center', 'CC-78')).code).toBe(0);
    expect((await cli('keys', 'list', '--cost-center', 'CC-77')).stdout).toBe('No keys found.\n');
    expect((await cli('usage', '--group-by', 'cost_center')).stdout).toMatch(
      /^COST CENTER +CALLS[^]*\nCC-9 +3 /,
    );
    expect((await cli('usage', '--group-by', 'owner')).stdout).toMatch(/^OWNER +CALLS[^]*\nann +3 /);
  });
});
