import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import type { SearchResult } from '../../src/search/search.schema.js';
import { attemptId } from '../../src/request-log/attempts.js';
import { ADD_NEW_ROWS } from '../../src/usage/rollup-sql.js';
import { insertRow } from '../request-log/rows.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { setPatience } from '../support/patience.js';

const HOUR_MS = 3_600_000;
const ago = (hours: number) => new Date(Date.now() - hours * HOUR_MS);

let postern: TestGateway;
let member: string;
const made = {} as Record<
  'team' | 'key' | 'otherTeam' | 'otherKey',
  { id: string; prefix: string; key: string }
>;
beforeAll(async () => {
  postern = await startTestGateway();
  made.team = await postern.admin('POST', '/teams', { name: 'search' });
  made.key = await postern.admin('POST', '/keys', { team: 'search', name: 'nightly' });
  made.otherTeam = await postern.admin('POST', '/teams', { name: 'research' });
  made.otherKey = await postern.admin('POST', '/keys', { team: 'research', name: 'search' });
  ({ token: member } = await postern.admin<{ token: string }>('POST', '/tokens', {
    name: 'member',
    role: 'team',
    teams: ['search'],
  }));
});
afterAll(() => postern.stop());

const find = (text: string, more = '') =>
  postern.admin<SearchResult>('GET', `/search?q=${encodeURIComponent(text)}${more}`);
const found = async (text: string, more = '') =>
  (await find(text, more)).data.map(({ kind, name, team }) => [
    kind,
    team === null ? name : `${team}/${name}`,
  ]);
const asMember = async (text: string) => {
  const response = await fetch(`${postern.url}/admin/v1/search?q=${encodeURIComponent(text)}`, {
    headers: { authorization: `Bearer ${member}` },
  });
  return (await response.json()) as SearchResult;
};
const call = (at: Date, columns: object = {}) =>
  insertRow(postern.database, at, { team_id: made.team.id, key_id: made.key.id, ...columns });

describe('a search', () => {
  it('finds teams and keys by parts of their names, in any case, the exact ones first', async () => {
    expect(await found('SEARCH', '&in=names')).toEqual([
      ['team', 'search'],
      ['team', 'research'],
      ['key', 'research/search'],
      ['key', 'search/nightly'],
    ]);
    expect(await found('search/night', '&in=names')).toEqual([['key', 'search/nightly']]);
    expect(await found('%', '&in=names')).toEqual([]);
  });

  it('finds a key of exactly this name among many others', async () => {
    await postern.database.query(
      `INSERT INTO gateway_key (id, team_id, name) SELECT gen_random_uuid(), $1, 'ci-' || i FROM generate_series(1, 60) i`,
      [made.otherTeam.id],
    );
    await postern.admin('POST', '/keys', { team: 'research', name: 'ci' });
    await postern.database
      .query(`UPDATE gateway_key SET id = '00000000-0000-7000-8000-000000000000' WHERE name = 'ci'`)
      .catch(() => undefined);
    const keys = (await found('ci', '&in=names')).filter(([kind]) => kind === 'key');
    expect(keys[0]).toEqual(['key', 'research/ci']);
    expect(keys).toHaveLength(5);
  });

  it('finds by IDs and by the first characters of a key', async () => {
    const id = await call(ago(0));
    expect(await find(id)).toMatchObject({ data: [{ kind: 'request', id }], log: null });
    expect(await find(id.toUpperCase())).toMatchObject({ data: [{ kind: 'request', id }] });
    expect(await found(made.team.id)).toEqual([['team', 'search']]);
    expect(await found(made.key.id)).toEqual([['key', 'search/nightly']]);
    expect(await found(made.key.prefix)).toEqual([['key', 'search/nightly']]);
    expect(await found(made.key.prefix.slice(0, 8))).toEqual([['key', 'search/nightly']]);
    expect(await found(uuidv7())).toEqual([]);
    expect(await found('ptn_%')).toEqual([]);
  });

  it('finds the last attempt of a call by the ID of the call, of which the log has no row', async () => {
    const callId = uuidv7({ msecs: ago(1).getTime() });
    const startedAt = ago(1);
    const attempt = (number: number, outcome: string) =>
      insertRow(postern.database, startedAt, {
        id: attemptId({ callId, number }),
        started_at: new Date(Number.parseInt(callId.replace('-', '').slice(0, 12), 16)),
        call_id: callId,
        attempt: number,
        team_id: made.team.id,
        outcome,
      });
    await attempt(2, 'retried');
    await attempt(3, 'completed');
    const last = attemptId({ callId, number: 3 });
    expect((await find(callId)).data).toMatchObject([{ kind: 'request', id: last }]);
    expect((await asMember(callId)).data).toMatchObject([{ kind: 'request', id: last }]);
  });

  it('finds a call by the ID of the provider, and says how far it looked', async () => {
    const id = await call(ago(30), { provider_request_id: 'req_far' });
    const { data, log } = await find('req_far');
    expect(data).toEqual([
      { kind: 'request', id, name: 'req_far', team: 'search', at: expect.any(String) as string },
    ]);
    expect(Date.parse(log!.from)).toBeLessThan(ago(30).getTime());
    expect((await find('req_nowhere')).log).toEqual({ from: expect.any(String) as string, whole: true });
    // From there on there is nothing more.
    expect(await find('req_far', `&in=log&before=${log!.from}`)).toMatchObject({
      data: [],
      log: { whole: true },
    });
    expect(await find('req_far', `&before=${ago(29).toISOString()}`)).toMatchObject({ data: [{ id }] });
    expect(await find('req_far', '&in=names')).toEqual({ data: [], log: null });
  });

  it('finds end users, sessions and models by their whole names, and models by a part', async () => {
    await call(ago(2), { end_user: 'jane@example.com', session_id: 's-17', model: 'house-model' });
    expect(await found('jane@example.com')).toEqual([['end_user', 'jane@example.com']]);
    expect(await found('jane')).toEqual([]);
    expect(await found('s-17')).toEqual([['session', 's-17']]);
    // Not in the sums yet: they are added up every few seconds.
    await postern.database.query('TRUNCATE usage_slot, usage_day');
    expect(await found('house-model')).toEqual([['model', 'house-model']]);
    await postern.database.query('TRUNCATE usage_slot, usage_day');
    await postern.database.query(ADD_NEW_ROWS, [new Date(0), new Date(Date.now() + HOUR_MS)]);
    expect(await found('HOUSE')).toEqual([['model', 'house-model']]);
    expect(await found('house-model')).toEqual([['model', 'house-model']]);
  });

  it('finds for a member what their teams have, and nothing else', async () => {
    const hidden = {
      team_id: made.otherTeam.id,
      key_id: made.otherKey.id,
      provider_request_id: 'req_hidden',
    };
    const id = await call(ago(1), { ...hidden, end_user: 'hidden-user', model: 'hidden-model' });
    const own = await call(ago(1), { provider_request_id: 'req_own' });
    await postern.database.query('TRUNCATE usage_slot, usage_day');
    await postern.database.query(ADD_NEW_ROWS, [new Date(0), new Date(Date.now() + HOUR_MS)]);
    for (const text of [
      'req_hidden',
      'hidden-user',
      'hidden',
      id,
      made.otherTeam.id,
      made.otherKey.id,
      made.otherKey.prefix,
    ]) {
      expect((await find(text)).data).not.toEqual([]);
      expect((await asMember(text)).data).toEqual([]);
    }
    expect((await asMember('search')).data.map(({ kind, name }) => [kind, name])).toEqual([
      ['team', 'search'],
      ['key', 'nightly'],
    ]);
    expect((await asMember('req_own')).data).toMatchObject([{ id: own }]);
  });

  it('reads the log for a limited time, and says that it did not see all of it', async () => {
    const restore = setPatience(0.5, 'a search of the log');
    const client = new pg.Client({ connectionString: postern.database.url });
    await client.connect();
    try {
      // No query of the log comes to an end.
      await client.query('BEGIN; LOCK TABLE ONLY request_log IN ACCESS EXCLUSIVE MODE');
      const { data, log } = await find('research');
      expect(data).toMatchObject([{ kind: 'team', name: 'research' }, { kind: 'key' }, {}, {}, {}, {}]);
      expect(log).toEqual({ from: expect.any(String) as string, whole: false });
      expect(Date.parse(log!.from)).toBeGreaterThan(ago(1).getTime());
      // The others wait for the first one, so that they leave a connection.
      const reasons = await eventually(async () => {
        const all = await Promise.allSettled(Array.from({ length: 8 }, () => find('research', '&in=log')));
        const found = all.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
        return found.length === 3 && found;
      });
      expect(reasons).toEqual(
        Array(3).fill(expect.stringMatching(/ 429 .*Too many searches of the request log are running/)),
      );
    } finally {
      restore();
      await client.end();
    }
  });

  it.each([
    ['a whole key', `ptn_${'a'.repeat(38)}`],
    ['a key inside of text', `Bearer ptn_${'a'.repeat(38)}`],
    ['most of a key', `ptn_${'a'.repeat(9)}`],
    ['most of a refresh token', `ptr_${'a'.repeat(9)}`],
    ['most of a device code', `ptd_${'a'.repeat(9)}`],
    ['no text', ' '],
    ['a control character', 'a\u0000'],
  ])('rejects %s', async (_, text) => {
    await expect(find(text)).rejects.toThrow(/ 400 /);
  });
});
