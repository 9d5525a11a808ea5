import { randomBytes } from 'node:crypto';
import { DataSource } from 'typeorm';
import { SignInRetention } from '../../src/identity/sign-in/sign-in-retention.service.js';
import { SignInMetrics } from '../../src/identity/sign-in/sign-in-metrics.js';
import { MetricsService } from '../../src/observability/metrics.service.js';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { eventually, soon } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { Browser, poll, renew, signedIn, signInSettings, startDevice, USERS } from './device-flow.js';
import { statusWith } from './exchanges.js';

const ENDED = { status: 400, error: 'invalid_grant' };
const users: Record<string, Record<string, unknown>> = { ...USERS };

let provider: RawProvider;
let issuer: OpenIdProvider;
let replicas: [TestGateway, TestGateway];
beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, users, { refresh: true });
  const settings = {
    PROVIDER_URL: provider.url,
    MASTER_KEY: randomBytes(32).toString('base64'),
    ...signInSettings(issuer, publicUrl),
  };
  const first = await startTestGateway(settings);
  replicas = [first, await startTestGateway({ ...settings, PORT: '0' }, first.database)];
  await first.admin('PATCH', '/teams/default', { sign_in: {} });
  await first.admin('POST', '/teams', { name: 'research', sign_in: {} });
});
afterAll(async () => {
  for (const replica of [...replicas].reverse()) await replica.stop();
  await provider.stop();
  await issuer.stop();
});

const rows = (sql: string, values: unknown[] = []) =>
  replicas[0].database.query<Record<string, unknown>>(sql, values);
const newest = async () =>
  (
    await rows(`SELECT id, end_reason, ended_at IS NOT NULL AS ended, renewing_until, idp_refresh,
                  idp_checked_at > created_at AS checked FROM sign_in ORDER BY id DESC LIMIT 1`)
  )[0]!;

it('keeps the next token of the provider also while its keys cannot be read', async () => {
  const { refresh } = await signedIn(replicas[0], issuer);
  const before = await newest();
  issuer.hidesKeys = true;
  // It has read no keys yet.
  const { status } = await renew(replicas[1], refresh);
  issuer.hidesKeys = false;
  expect(status).toBe(200);
  const after = await newest();
  expect(after).toMatchObject({ id: before.id, checked: true });
  expect(after.idp_refresh).not.toEqual(before.idp_refresh);
});

it('asks the provider once, and again with the token that it got for the next time', async () => {
  const { refresh } = await signedIn(replicas[0], issuer);
  const before = await newest();
  const asked = issuer.tokenRequests;
  const one = await renew(replicas[1], refresh);
  expect(one.status).toBe(200);
  expect(issuer.tokenRequests).toBe(asked + 1);
  const after = await newest();
  expect(after).toMatchObject({ id: before.id, checked: true, renewing_until: null });
  expect((await renew(replicas[0], one.refresh_token!)).status).toBe(200);
  // A repeat asks nobody.
  expect((await renew(replicas[0], one.refresh_token!)).status).toBe(200);
  expect(issuer.tokenRequests).toBe(asked + 2);
});

it('at the same time on two replicas gives the same tokens, and asks the provider once at a time', async () => {
  const { refresh } = await signedIn(replicas[0], issuer);
  const asked = issuer.tokenRequests;
  const results = await Promise.all([0, 1, 0, 1].map((one) => renew(replicas[one as 0 | 1], refresh)));
  expect(results.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(new Set(results.map(({ access_token: token }) => token)).size).toBe(1);
  expect(issuer.tokenRequests).toBe(asked + 1);
  for (const replica of replicas) expect(await statusWith(replica, results[0]!.access_token!)).toBe(200);
});

it('ends a sign-in whose person is in the team no more, and only that', async () => {
  users.mover = { groups: ['team-default', 'team-research'], email: 'mo@example.com', email_verified: true };
  const left = await signedIn(replicas[0], issuer, 'mover', 'default');
  const stays = await signedIn(replicas[0], issuer, 'mover', 'research');
  users.mover = { ...users.mover, groups: ['team-research'] };
  expect(await renew(replicas[0], left.refresh)).toMatchObject(ENDED);
  await Promise.all(
    replicas.map((replica) => soon(async () => (await statusWith(replica, left.access)) === 401)),
  );
  expect((await renew(replicas[0], stays.refresh)).status).toBe(200);
  const ended = await rows(`SELECT end_reason FROM sign_in si JOIN person p ON p.id = si.person_id
    WHERE p.subject = 'mover' AND si.ended_at IS NOT NULL`);
  expect(ended).toEqual([{ end_reason: 'no_team' }]);
  // The claim is absent: no team.
  users.mover = { email: 'mo@example.com', email_verified: true };
  const { refresh_token: next } = await renew(replicas[0], stays.refresh);
  expect(await renew(replicas[1], next!)).toMatchObject(ENDED);
});

it('ends the sign-in of a person who is gone at the provider', async () => {
  users.gone = { groups: ['team-default'], email: 'go@example.com', email_verified: true };
  const { access, refresh } = await signedIn(replicas[0], issuer, 'gone');
  issuer.gone.add('gone');
  expect(await renew(replicas[0], refresh)).toMatchObject(ENDED);
  await Promise.all(replicas.map((replica) => soon(async () => (await statusWith(replica, access)) === 401)));
  expect(await newest()).toMatchObject({ ended: true, end_reason: 'provider', idp_refresh: null });
});

it('stores no token of the provider for a sign-in that ends while the provider is asked', async () => {
  const { refresh } = await signedIn(replicas[0], issuer);
  const { id } = await newest();
  const asked = issuer.tokenRequests;
  let release = () => {};
  issuer.held = new Promise((done) => (release = done));
  const renewing = renew(replicas[0], refresh);
  await eventually(() => issuer.tokenRequests > asked);
  await replicas[1].admin('DELETE', `/sign-ins/${String(id)}`);
  issuer.held = null;
  release();
  expect(await renewing).toMatchObject(ENDED);
  expect(await newest()).toMatchObject({ id, end_reason: 'ended', idp_refresh: null });
});

it.each([
  ['means somebody else', `subject = 'another'`, 1],
  // It does not get the token of the former one.
  ['is another one', `issuer = 'https://former.example.com'`, 0],
  ['is another one of the same host', `issuer = issuer || '/realms/former'`, 0],
])('ends a sign-in if the provider %s', async (_, change, requests) => {
  const { access, refresh } = await signedIn(replicas[0], issuer);
  const undo = await rows(`SELECT id, issuer, subject FROM person WHERE subject = 'jane'`);
  await rows(`UPDATE person SET ${change} WHERE subject = 'jane'`);
  const asked = issuer.tokenRequests;
  try {
    expect(await renew(replicas[0], refresh)).toMatchObject(ENDED);
    expect(issuer.tokenRequests).toBe(asked + requests);
    expect(await newest()).toMatchObject({ ended: true, end_reason: 'provider' });
    await soon(async () => (await statusWith(replicas[1], access)) === 401);
  } finally {
    for (const { id, issuer: iss, subject } of undo)
      await rows('UPDATE person SET issuer = $2, subject = $3 WHERE id = $1', [id, iss, subject]);
  }
});

it('waits for no transaction while the provider is asked, and goes on where a process was killed', async () => {
  const { refresh } = await signedIn(replicas[0], issuer);
  const { id } = await newest();
  // Another process asks, and holds no lock meanwhile.
  await rows(`UPDATE sign_in SET renewing_until = now() + interval '30 seconds' WHERE id = $1`, [id]);
  const asked = jest.spyOn(replicas[0].gateway.app.get(DataSource), 'query');
  const waiting = renew(replicas[0], refresh);
  // It has found the claim, and waits.
  await eventually(() => asked.mock.calls.some(([text]) => text.includes('SELECT FROM refresh_token')));
  asked.mockRestore();
  await rows('UPDATE sign_in SET last_renewed_at = now() WHERE id = $1', [id]);
  // It was killed: its claim ends.
  await rows('UPDATE sign_in SET renewing_until = now() WHERE id = $1', [id]);
  expect((await waiting).status).toBe(200);
});

it('asks the provider itself if another process got no response from it', async () => {
  const { refresh } = await signedIn(replicas[0], issuer);
  const { id } = await newest();
  const asked = issuer.tokenRequests;
  await rows(`UPDATE sign_in SET renewing_until = now() + interval '30 seconds' WHERE id = $1`, [id]);
  const dataSource = replicas[0].gateway.app.get(DataSource);
  const query = dataSource.query.bind(dataSource) as (...statement: unknown[]) => Promise<unknown>;
  // The other process gives up between the two statements of this one: its claim is seen, and then it is gone.
  const spy = jest.spyOn(dataSource, 'query').mockImplementation(async (...statement: unknown[]) => {
    if (/SELECT FROM refresh_token/.test(String(statement[0])))
      await rows('UPDATE sign_in SET renewing_until = NULL WHERE id = $1', [id]);
    return query(...statement);
  });
  const { status } = await renew(replicas[0], refresh).finally(() => spy.mockRestore());
  expect([status, issuer.tokenRequests - asked]).toEqual([200, 1]);
});

it('waits for no other process that asks about a sign-in that is over', async () => {
  const { refresh } = await signedIn(replicas[0], issuer);
  const { id } = await newest();
  await rows(`UPDATE sign_in SET renewing_until = now() + interval '30 seconds' WHERE id = $1`, [id]);
  await replicas[0].admin('PATCH', '/teams/default', { disabled: true });
  const { status, error } = await renew(replicas[0], refresh);
  await replicas[0].admin('PATCH', '/teams/default', { disabled: false });
  // The claim of the other process would count among the twenty of the next test.
  await rows('UPDATE sign_in SET renewing_until = NULL WHERE id = $1', [id]);
  expect([status, error]).toEqual([400, 'invalid_grant']);
});

it('asks about twenty at a time, and claims none before its turn', async () => {
  const all: string[] = [];
  for (let i = 0; i < 21; i++)
    all.push((await signedIn(replicas[0], issuer, i < 15 ? 'jane' : 'heir')).refresh);
  const asked = issuer.tokenRequests;
  let release = () => {};
  issuer.held = new Promise((done) => (release = done));
  const claimed = async () =>
    (await rows('SELECT FROM sign_in WHERE ended_at IS NULL AND renewing_until > now()')).length;
  const renewing = all.slice(0, 20).map((refresh) => renew(replicas[0], refresh));
  await eventually(() => issuer.tokenRequests === asked + 20);
  // No transaction is open while the provider is asked.
  const open = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`;
  await eventually(async () => (await rows(open)).length === 0);
  const last = renew(replicas[0], all[20]!);
  const counts: number[] = [];
  for (let i = 0; i < 30; i++) counts.push(await claimed());
  issuer.held = null;
  release();
  expect(Math.max(...counts)).toBe(20);
  const replies = await Promise.all([...renewing, last]);
  expect(replies.map(({ status }) => status)).toEqual(Array(21).fill(200));
});

it.each([
  ['nobody has renewed it for 14 days', `last_renewed_at = now() - interval '14 days'`, 30],
  ['its team has fewer days', `created_at = now() - interval '2 days'`, 1],
])('is over, and is listed and counted so, once %s', async (_, change, days) => {
  const { access, refresh } = await signedIn(replicas[0], issuer, 'heir');
  const { id } = await newest();
  const [{ person_id: person } = {}] = await rows('SELECT person_id FROM sign_in WHERE id = $1', [id]);
  const { admin, gateway } = replicas[0];
  const seen = async () => {
    type Listed = { data: { id: string; expires_at: string }[] };
    const { data } = await admin<Listed>('GET', '/sign-ins?state=active&limit=200');
    const { live_sign_ins: live } = await admin<{ live_sign_ins: number }>(
      'GET',
      `/people/${String(person)}`,
    );
    await gateway.app.get(SignInMetrics).count();
    const counted = /^postern_sign_ins (\d+)$/m.exec(await gateway.app.get(MetricsService).text());
    return { listed: data.some((one) => one.id === id), live, counted: Number(counted![1]) };
  };
  const before = await seen();
  expect(before.listed).toBe(true);
  await rows(`UPDATE sign_in SET ${change} WHERE id = $1`, [id]);
  await admin('PATCH', '/teams/default', { sign_in: { days } });
  expect(await renew(replicas[0], refresh)).toMatchObject(ENDED);
  expect(await seen()).toEqual({ listed: false, live: before.live - 1, counted: before.counted - 1 });
  // Once its end is noted, its last token ends on every replica, and more days do not revive it.
  await gateway.app.get(SignInRetention).run();
  await Promise.all(replicas.map((replica) => soon(async () => (await statusWith(replica, access)) === 401)));
  expect(await newest()).toMatchObject({ id, ended: true, end_reason: 'over', idp_refresh: null });
  // An earlier version kept it.
  await rows(`UPDATE sign_in SET idp_refresh = '\\x00' WHERE id = $1`, [id]);
  await gateway.app.get(SignInRetention).run();
  expect(await newest()).toMatchObject({ id, idp_refresh: null });
  await admin('PATCH', '/teams/default', { sign_in: {} });
  expect(await seen()).toMatchObject({ listed: false });
  const [{ past } = {}] = await rows('SELECT ended_at < now() AS past FROM sign_in WHERE id = $1', [id]);
  expect(past).toBe(true);
});

it('deletes the token of the provider of a request that nobody redeemed in time', async () => {
  const begin = async () => {
    const { body } = await startDevice(replicas[0]);
    await new Browser(replicas[0]).signIn(issuer, body.user_code, 'jane');
    const [{ id } = {}] = await rows(`SELECT id FROM device_request WHERE device_digest = sha256($1)`, [
      Buffer.from(body.device_code),
    ]);
    return { id, code: body.device_code };
  };
  const late = await begin();
  const other = await begin();
  const kept = async () =>
    rows('SELECT id FROM device_request WHERE idp_refresh IS NOT NULL AND id IN ($1, $2)', [
      late.id,
      other.id,
    ]);
  expect(await kept()).toHaveLength(2);
  await rows('UPDATE device_request SET expires_at = now() WHERE id = $1', [late.id]);
  await replicas[0].gateway.app.get(SignInRetention).run();
  expect(await kept()).toEqual([{ id: other.id }]);
  expect(await poll(replicas[0], late.code)).toMatchObject({ status: 400, error: 'expired_token' });
  // One that is redeemed in time keeps it, and asks the provider with it.
  const { refresh_token: refresh } = await poll(replicas[0], other.code);
  const asked = issuer.tokenRequests;
  expect((await renew(replicas[1], refresh!)).status).toBe(200);
  expect(issuer.tokenRequests).toBe(asked + 1);
});

it('gives no token that works longer than the days of its team', async () => {
  const { refresh } = await signedIn(replicas[0], issuer, 'heir');
  const { id } = await newest();
  await rows(
    `UPDATE sign_in SET created_at = now() - interval '23 hours' - interval '50 minutes' WHERE id = $1`,
    [id],
  );
  await replicas[0].admin('PATCH', '/teams/default', { sign_in: { days: 1, token_minutes: 720 } });
  const { expires_in: seconds } = await renew(replicas[0], refresh);
  await replicas[0].admin('PATCH', '/teams/default', { sign_in: {} });
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(600);
});

it('ends, eight hours after the last answer, if the token of the provider cannot be decrypted any more', async () => {
  const { refresh } = await signedIn(replicas[0], issuer);
  const { id } = await newest();
  await rows(`UPDATE sign_in SET idp_refresh = '\\x00' WHERE id = $1`, [id]);
  const next = await renew(replicas[0], refresh);
  expect(next.status).toBe(200);
  await rows(`UPDATE sign_in SET idp_checked_at = now() - interval '9 hours' WHERE id = $1`, [id]);
  expect(await renew(replicas[1], next.refresh_token!)).toMatchObject(ENDED);
  expect(await newest()).toMatchObject({ ended: true, end_reason: 'provider' });
});

it('goes on for eight hours without the provider, and then ends nothing but issues nothing', async () => {
  const { access, refresh } = await signedIn(replicas[0], issuer);
  const { id } = await newest();
  await issuer.stop();
  const one = await renew(replicas[0], refresh);
  expect(one.status).toBe(200);
  await rows(`UPDATE sign_in SET idp_checked_at = now() - interval '9 hours' WHERE id = $1`, [id]);
  const response = await fetch(`${replicas[1].url}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: one.refresh_token! }),
  });
  expect([response.status, response.headers.get('retry-after'), await response.json()]).toEqual([
    503,
    '30',
    expect.objectContaining({ error: 'temporarily_unavailable' }),
  ]);
  expect(await newest()).toMatchObject({ ended: false, renewing_until: null });
  expect(await statusWith(replicas[0], access)).toBe(200);
});
