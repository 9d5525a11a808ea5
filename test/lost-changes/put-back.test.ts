import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EntryTail, KEPT_FOLDER } from '../../src/lost-changes/entry-tail.service.js';
import { Regressions } from '../../src/regressions/regressions.service.js';
import { signIn } from '../admin/browser.js';
import { postForm } from '../identity/exchanges.js';
import { storeTokens, storeTrust } from '../identity/stored-tokens.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, type TestGateway } from '../support/gateway.js';
import type { Trouble } from '../support/postgres-relay.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { FEED, LostTail, type Replica, storeSignIn } from './lost-tail.js';

interface Key {
  id: string;
  key: string;
}

/** What a client sends, and how it ends. */
interface Credential {
  what: string;
  isAccepted: (at: TestGateway) => Promise<boolean>;
  end: () => Promise<unknown>;
}

let provider: RawProvider;
let tail: LostTail;
/** The one that reads every end, and one that reads none of them in time. */
let reader: Replica;
let other: Replica;
beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], 'ok'));
  });
  tail = await LostTail.start(2, { PROVIDER_URL: provider.url });
  [reader, other] = tail.replicas as [Replica, Replica];
});
afterEach(() => {
  for (const { relay } of tail.replicas) relay.setAll('none');
});
afterAll(async () => {
  await tail.stop();
  await provider.stop();
});

const query = <T extends object>(text: string, values?: unknown[]) => tail.database.query<T>(text, values);

async function statusOf(at: TestGateway, path: string, headers: Record<string, string>): Promise<number> {
  const response = await fetch(`${at.url}${path}`, { headers });
  await response.arrayBuffer();
  return response.status;
}

const withKey = (key: string) => async (at: TestGateway) =>
  (await statusOf(at, '/v1/models', { authorization: `Bearer ${key}` })) === 200;

const withToken = (token: string) => async (at: TestGateway) =>
  (await statusOf(at, '/admin/v1/teams', { authorization: `Bearer ${token}` })) === 200;

const admin = <T>(method: string, path: string, body?: object) => reader.postern.admin<T>(method, path, body);

const newKey = (members: object = {}) =>
  admin<Key>('POST', '/keys', { team: 'default', name: randomUUID(), ...members });

/** One of each kind. */
async function credentials(): Promise<Credential[]> {
  const revoked = await newKey();
  const disabled = await newKey();
  const expired = await newKey();
  const team = await admin<Key>('POST', '/teams', { name: `team-${randomUUID()}` });
  const ofTeam = await newKey({ team: team.id });
  const rotated = await newKey();
  await admin('POST', `/keys/${rotated.id}/rotate`, { grace_seconds: 3_600 });
  const ofTokens = await newKey();
  const [trustId, removedTrust, disabledTrust] = [
    await storeTrust(tail.database, ofTokens.id),
    await storeTrust(tail.database, ofTokens.id),
    await storeTrust(tail.database, ofTokens.id),
  ];
  const tokenOf = async (trust: string) =>
    (await storeTokens(tail.database, { keyId: ofTokens.id, trustId: trust }))[0]!;
  const [issued, ofRemoved, ofDisabled] = [
    await tokenOf(trustId),
    await tokenOf(removedTrust),
    await tokenOf(disabledTrust),
  ];
  const one = await storeSignIn(tail.database, ofTokens.id);
  const person = await storeSignIn(tail.database, ofTokens.id);
  const token = await admin<{ id: string; token: string }>('POST', '/tokens', {
    name: randomUUID(),
    role: 'viewer',
  });
  const cookie = await signIn(reader.postern, ADMIN_TOKEN);
  const [session] = (await admin<{ data: [{ id: string }] }>('GET', '/sessions?limit=1')).data;
  const isSignedIn = async (at: TestGateway) => {
    const response = await fetch(`${at.url}/admin/v1/session`, {
      headers: { cookie: cookie.slice('Cookie: '.length) },
    });
    return response.ok && ((await response.json()) as { session: object | null }).session !== null;
  };
  const soon = () => new Date(Date.now() + 15_000).toISOString();
  return [
    {
      what: 'a key that was revoked',
      isAccepted: withKey(revoked.key),
      end: () => admin('POST', `/keys/${revoked.id}/revoke`),
    },
    {
      what: 'a key that was disabled',
      isAccepted: withKey(disabled.key),
      end: () => admin('PATCH', `/keys/${disabled.id}`, { disabled: true }),
    },
    {
      what: 'a key that was given an end',
      isAccepted: withKey(expired.key),
      end: () => admin('PATCH', `/keys/${expired.id}`, { expires_at: soon() }),
    },
    {
      what: 'a key of a team that was disabled',
      isAccepted: withKey(ofTeam.key),
      end: () => admin('PATCH', `/teams/${team.id}`, { disabled: true }),
    },
    {
      what: 'a secret that another rotation ended',
      isAccepted: withKey(rotated.key),
      end: () => admin('POST', `/keys/${rotated.id}/rotate`, { grace_seconds: 3_600 }),
    },
    {
      what: 'a token that its owner ended',
      isAccepted: withKey(issued),
      end: () => postForm(`${reader.postern.url}/oauth/revoke`, { token: issued }),
    },
    {
      what: 'a token of a trust that was removed',
      isAccepted: withKey(ofRemoved),
      end: () => admin('DELETE', `/trusts/${removedTrust}`),
    },
    {
      what: 'a token of a trust that was disabled',
      isAccepted: withKey(ofDisabled),
      end: () => admin('PATCH', `/trusts/${disabledTrust}`, { enabled: false }),
    },
    {
      what: 'a token of a sign-in that was ended',
      isAccepted: withKey(one.token),
      end: () => admin('DELETE', `/sign-ins/${one.signInId}`),
    },
    {
      what: 'a token of a person who was ended',
      isAccepted: withKey(person.token),
      end: () => admin('POST', `/people/${person.personId}/end`, {}),
    },
    {
      what: 'a token of the admin API',
      isAccepted: withToken(token.token),
      end: () => admin('DELETE', `/tokens/${token.id}`),
    },
    { what: 'a session', isAccepted: isSignedIn, end: () => admin('DELETE', `/sessions/${session.id}`) },
  ];
}

async function acceptedAt(at: Replica, all: readonly Credential[]): Promise<string[]> {
  const accepted = await Promise.all(all.map(({ isAccepted }) => isAccepted(at.postern)));
  return all.filter((_, i) => accepted[i]).map(({ what }) => what);
}

/** Waits until a replica has read every entry. */
async function hasRead({ postern }: Replica): Promise<void> {
  const entries = postern.gateway.app.get(EntryTail);
  await eventually(async () => {
    const [newest] = await query<{ id: string }>('SELECT id FROM audit_log ORDER BY id DESC LIMIT 1');
    return (await entries.all()).some(({ row }) => row.id === newest!.id);
  });
}

const entriesOf = (action: string, subjects?: string[]) =>
  query<{ subject_id: string; actor: string; after: { entry: string } }>(
    'SELECT subject_id, actor, after FROM audit_log WHERE action = $1 AND ($2::uuid[] IS NULL OR subject_id = ANY ($2)) ORDER BY id',
    [action, subjects],
  );

it('each kind of end is never undone where it was read, and comes back everywhere', async () => {
  const all = await credentials();
  const names = all.map(({ what }) => what);
  for (const each of tail.replicas)
    await eventually(async () => (await acceptedAt(each, all)).length === all.length);
  await tail.keep(true);
  other.relay.set(FEED, 'cut');
  await Promise.all(all.map(({ end }) => end()));
  await admin('POST', '/teams', { name: 'lost' });
  await hasRead(reader);
  await eventually(async () => (await acceptedAt(reader, all)).length === 0);
  const ends = await query<{ id: string }>(
    `SELECT id FROM audit_log WHERE action IN ('revoked', 'ended', 'removed', 'rotated') OR action = 'changed'`,
  );

  await tail.lose();
  // Keys and sessions are read again before the feed is there: the loss is real, and the reader accepts nothing.
  for (const { relay } of tail.replicas)
    for (const name of ['postern-lookups', 'postern']) relay.set(name, 'none');
  await eventually(async () => (await acceptedAt(other, all)).length === names.length);
  for (let round = 0; round < 5; round++) expect(await acceptedAt(reader, all)).toEqual([]);

  for (const { relay } of tail.replicas) relay.setAll('none');
  await eventually(async () => {
    expect(await acceptedAt(reader, all)).toEqual([]);
    return (await acceptedAt(other, all)).length === 0;
  });

  // Each is there once, with its ID, and says so; with the person, their sign-in.
  // What is not applied comes after what is.
  await eventually(async () => {
    const found = await query('SELECT FROM audit_log WHERE id = ANY ($1)', [ends.map(({ id }) => id)]);
    return found.length === ends.length;
  });
  const putBack = await entriesOf('put_back');
  expect(putBack.map(({ actor }) => actor)).toEqual(Array(all.length + 1).fill('failover'));
  expect(new Set(putBack.map(({ after }) => after.entry)).size).toBe(all.length + 1);
  // The token of the OpenID provider goes with the sign-in, as when it ends.
  expect(await query('SELECT idp_refresh FROM sign_in WHERE ended_at IS NOT NULL')).toEqual(
    Array(2).fill({ idp_refresh: null }),
  );
  // What is not applied is for an administrator: the rotation, and the new team.
  const [regression] = await eventually(async () => {
    const rows = await query<{
      ends_put_back: string;
      lost_entries: { action: string; subjectType: string }[];
    }>('SELECT ends_put_back, lost_entries FROM database_regression ORDER BY noticed_at DESC LIMIT 1');
    return rows[0] !== undefined && rows[0].lost_entries.length > 0 && rows;
  });
  expect(regression!.ends_put_back).toBe(String(all.length + 1));
  expect(
    regression!.lost_entries.map(({ action, subjectType }) => `${subjectType} ${action}`).sort(),
  ).toEqual(['key rotated', 'team created']);
});

it('is put back once by replicas that both have read it, also if nothing that is counted was lost; a later change wins', async () => {
  const [revoked, disabled, rotated] = [await newKey(), await newKey(), await newKey()];
  for (const { postern } of tail.replicas)
    for (const { key } of [revoked, disabled]) await eventually(() => withKey(key)(postern));
  await tail.keep(false);
  await admin('POST', `/keys/${revoked.id}/revoke`);
  await admin('PATCH', `/keys/${disabled.id}`, { disabled: true });
  for (let i = 0; i < 2; i++) await admin('POST', `/keys/${rotated.id}/rotate`, { grace_seconds: 3_600 });
  for (const each of tail.replicas) await hasRead(each);

  await tail.lose();
  // An administrator decides about the key before the replicas have noticed anything.
  for (const { relay } of tail.replicas)
    for (const name of ['postern-lookups', 'postern']) relay.set(name, 'none');
  const set = (isDisabled: boolean) => admin('PATCH', `/keys/${disabled.id}`, { disabled: isDisabled });
  await eventually(() =>
    set(true).then(
      () => true,
      () => false,
    ),
  );
  await set(false);
  for (const { postern } of tail.replicas) expect(await withKey(revoked.key)(postern)).toBe(false);

  for (const { relay } of tail.replicas) relay.setAll('none');
  await eventually(async () => (await entriesOf('put_back', [revoked.id])).length > 0);
  for (const { postern } of tail.replicas)
    await eventually(
      async () => (await withKey(disabled.key)(postern)) && !(await withKey(revoked.key)(postern)),
    );
  expect(await entriesOf('put_back', [revoked.id, disabled.id])).toEqual([
    expect.objectContaining({ subject_id: revoked.id }),
  ]);
  expect(await entriesOf('revoked', [revoked.id])).toHaveLength(1);
  const [row] = await query<{ disabled: boolean }>('SELECT disabled FROM gateway_key WHERE id = $1', [
    disabled.id,
  ]);
  expect(row).toEqual({ disabled: false });
  // Both of its rotations are lost, so this is its only secret.
  for (const { postern } of tail.replicas) await eventually(() => withKey(rotated.key)(postern));
});

it('is put back so that no sign-in of its owner moves it: the latest expiry of a key', async () => {
  const key = await newKey({ expires_at: new Date(Date.now() + 864_000_000).toISOString() });
  const ends = () =>
    query<{ expires_at: Date; latest_expiry: Date }>(
      'SELECT expires_at, latest_expiry FROM gateway_key WHERE id = $1',
      [key.id],
    ).then(([row]) => row!);
  await query(`UPDATE gateway_key SET latest_expiry = now() + interval '80 days' WHERE id = $1`, [key.id]);
  await tail.keep(true);
  const wanted = new Date(Date.now() + 86_400_000);
  await admin('PATCH', `/keys/${key.id}`, { expires_at: wanted.toISOString() });
  expect(await ends()).toEqual({ expires_at: wanted, latest_expiry: wanted });
  for (const each of tail.replicas) await hasRead(each);

  await tail.lose();
  for (const { relay } of tail.replicas) relay.setAll('none');
  await eventually(async () => (await entriesOf('put_back', [key.id])).length > 0);
  expect(await ends()).toEqual({ expires_at: wanted, latest_expiry: wanted });
});

it('is put back from the files of a process that has ended, and these are removed then', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-kept-'));
  const revoked = await newKey();
  const ended = await tail.add(dataDir);
  await tail.keep(true);
  const setFeeds = (trouble: Trouble) => {
    for (const { relay } of [reader, other]) relay.set(FEED, trouble);
  };
  setFeeds('cut');
  await admin('POST', `/keys/${revoked.id}/revoke`);
  await hasRead(ended);
  await ended.postern.stop();
  const [left] = await readdir(join(dataDir, KEPT_FOLDER));
  expect(left).toBeDefined();

  await tail.lose();
  setFeeds('cut');
  for (const { relay } of tail.replicas) relay.set('*', 'none');
  await eventually(() => withKey(revoked.key)(other.postern));
  const next = await tail.add(dataDir);
  await eventually(async () => !(await withKey(revoked.key)(next.postern)));
  // The process rejects it before it has put it back.
  await eventually(async () => (await entriesOf('put_back', [revoked.id])).length === 1);
  await eventually(async () => !(await readdir(join(dataDir, KEPT_FOLDER))).includes(left!));
  setFeeds('none');
  await eventually(async () => !(await withKey(revoked.key)(other.postern)));
  expect(await entriesOf('put_back', [revoked.id])).toHaveLength(1);
  await next.postern.stop();
  await rm(dataDir, { recursive: true });
});

it('is not put back into a restored backup by itself, and is rejected until an administrator dismisses it', async () => {
  const [revoked, disabled] = [await newKey(), await newKey()];
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-kept-'));
  const ended = await tail.add(dataDir);
  await tail.keep(true);
  await query(`UPDATE standby.gateway_run SET at = at - interval '1 hour'`);
  other.relay.set(FEED, 'cut');
  await admin('POST', `/keys/${revoked.id}/revoke`);
  await admin('PATCH', `/keys/${disabled.id}`, { disabled: true });
  for (const each of [reader, ended]) await hasRead(each);
  await ended.postern.stop();

  await tail.lose();
  for (const { relay } of tail.replicas) relay.setAll('none');
  await tail.database.find(`SELECT FROM database_regression WHERE state = 'waiting'`);
  for (const { key } of [revoked, disabled]) {
    await eventually(() => withKey(key)(other.postern));
    expect(await withKey(key)(reader.postern)).toBe(false);
  }
  // A process that starts with the files of one that had read them rejects them too.
  const next = await tail.add(dataDir);
  for (const { key } of [revoked, disabled])
    await eventually(async () => !(await withKey(key)(next.postern)));
  expect(await entriesOf('put_back', [revoked.id, disabled.id])).toEqual([]);
  await query(`UPDATE database_regression SET state = 'dismissed' WHERE state = 'waiting'`);
  const living = [reader, next];
  const areAccepted = async () => {
    for (const { postern } of living)
      for (const { key } of [revoked, disabled]) await eventually(() => withKey(key)(postern));
    expect(await entriesOf('put_back', [revoked.id, disabled.id])).toEqual([]);
  };
  await areAccepted();

  // The decision stands on the next server.
  const servers = () => living.map(({ postern }) => postern.gateway.app.get(Regressions).server);
  const before = servers();
  await tail.keep(false);
  await tail.lose();
  for (const { relay } of tail.replicas) relay.setAll('none');
  await eventually(() =>
    Promise.resolve(
      living.every(({ postern }, i) => {
        const regressions = postern.gateway.app.get(Regressions);
        return regressions.server !== before[i] && regressions.isAdmitting;
      }),
    ),
  );
  await areAccepted();
  await next.postern.stop();
  await rm(dataDir, { recursive: true });
});
