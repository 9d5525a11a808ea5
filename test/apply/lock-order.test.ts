import { LOCK } from '../../src/apply/apply.service.js';
import type { EntryRow } from '../../src/audit/entry-rows.js';
import { SERVER_STARTED } from '../../src/database/known-ends/known-ends.js';
import { LostChanges } from '../../src/lost-changes/lost-changes.service.js';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { CONSOLE } from '../admin/browser.js';
import {
  Browser,
  poll,
  renew,
  signedIn,
  signInSettings,
  startDevice,
  USERS,
} from '../identity/device-flow.js';
import { exchange } from '../identity/exchanges.js';
import { FakeIssuer } from '../identity/fake-issuer.js';
import { HeldLocks } from '../identity/held-locks.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { unusedPort } from '../support/unused-port.js';

let people: OpenIdProvider;
let jobs: FakeIssuer;
let postern: TestGateway;
let locks: HeldLocks;
beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  people = await OpenIdProvider.start(publicUrl, USERS, { refresh: true });
  jobs = await FakeIssuer.start();
  postern = await startTestGateway(signInSettings(people, publicUrl));
  await postern.admin('PATCH', '/teams/default', {
    sign_in: {},
    self_service: { keys_per_user: 20, max_days: 90, sign_in_within_days: 30 },
  });
  await postern.admin('POST', '/keys', { team: 'default', name: 'ci', secret: false });
  await createTrust('job');
  // From the sixth time on, Postgres may execute the plan that it has kept, and locks what that names.
  for (let times = 0; times < 6; times++) await exchange(postern, 'job', await jobs.sign());
  await ownKey();
  locks = await HeldLocks.in(postern.database);
});
afterAll(async () => {
  await locks.end();
  await postern.stop();
  await jobs.stop();
  await people.stop();
});

const createTrust = (name: string) =>
  postern.admin('POST', '/trusts', {
    ...{ name, key: 'default/ci', issuer: jobs.url, audience: 'gateway', claims: { sub: ['job'] } },
  });

async function toConsole(): Promise<Browser> {
  const browser = new Browser(postern);
  const start = await browser.get('/admin/v1/oidc/start');
  const page = await browser.get(await browser.atProvider(people, start.headers.get('location')!, 'jane'));
  expect(page.status).toBe(200);
  return browser;
}

/** A key of Jane's own, which works while she signs in. */
async function ownKey(): Promise<void> {
  const cookies = (await toConsole()).cookies();
  const response = await fetch(`${postern.url}/admin/v1/keys`, {
    method: 'POST',
    headers: {
      ...Object.fromEntries(CONSOLE.map((line) => line.split(': ') as [string, string])),
      cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
    },
    body: JSON.stringify({ team: 'default', name: 'own' }),
  });
  expect(response.status).toBe(201);
}

let number = 0;
const newName = () => `n${++number}`;

/** Requests that lock several of the tables of `apply`: each prepares itself, and then sends what is tried. */
const REQUESTS: Record<string, () => Promise<() => Promise<unknown>>> = {
  'an identity token is exchanged': async () => {
    const token = await jobs.sign();
    return async () => expect(await exchange(postern, 'job', token)).toMatchObject({ status: 200 });
  },
  'a trust is created': () => Promise.resolve(() => createTrust(newName())),
  'a trust gets another key': async () => {
    await createTrust(newName());
    const key = newName();
    await postern.admin('POST', '/keys', { team: 'default', name: key });
    return () => postern.admin('PATCH', `/trusts/n${number - 1}`, { key: `default/${key}` });
  },
  'a person confirms a client': async () => {
    const browser = new Browser(postern);
    const { body } = await startDevice(postern);
    const page = await browser.identify(people, body.user_code, 'jane');
    // As the first time in this team: their key is created.
    await postern.database.query(
      `UPDATE gateway_key SET person_id = NULL, origin = 'manual', name = $1 WHERE origin = 'sign_in'`,
      [newName()],
    );
    return async () => expect((await browser.confirm(page, 'approve')).status).toBe(200);
  },
  'a client is signed in': async () => {
    const { body } = await startDevice(postern);
    expect((await new Browser(postern).signIn(people, body.user_code, 'jane')).status).toBe(200);
    return async () => expect(await poll(postern, body.device_code)).toMatchObject({ status: 200 });
  },
  'a sign-in is renewed': async () => {
    const { refresh } = await signedIn(postern, people);
    return async () => expect(await renew(postern, refresh)).toMatchObject({ status: 200 });
  },
  'a person signs in to the console': () => Promise.resolve(toConsole),
  'a key is created': () =>
    Promise.resolve(() => postern.admin('POST', '/keys', { team: 'default', name: newName() })),
  'a key is rotated': async () => {
    const { id } = await postern.admin<{ id: string }>('POST', '/keys', { team: 'default', name: newName() });
    return () => postern.admin('POST', `/keys/${id}/rotate`, { grace_seconds: 0 });
  },
  'a key is changed': async () => {
    const { id } = await postern.admin<{ id: string }>('POST', '/keys', { team: 'default', name: newName() });
    const limits = { requests_per_minute: ++number };
    return () => postern.admin('PATCH', `/keys/${id}`, { disabled: true, providers: ['default'], limits });
  },
  'a lost change of a key is put back': async () => {
    const { id } = await postern.admin<{ id: string }>('POST', '/keys', { team: 'default', name: newName() });
    const expires_at = new Date(Date.now() + 86_400_000).toISOString();
    await postern.admin('PATCH', `/keys/${id}`, { disabled: true, expires_at });
    // As it was before.
    await postern.database.query(
      'UPDATE gateway_key SET disabled = false, expires_at = NULL, latest_expiry = NULL WHERE id = $1',
      [id],
    );
    const [lost] = await postern.database.query<{ entry: string }>(
      `DELETE FROM audit_log WHERE subject_id = $1 AND action = 'changed' RETURNING row_to_json(audit_log)::text AS entry`,
      [id],
    );
    const known = [{ ...lost!, row: JSON.parse(lost!.entry) as EntryRow }];
    const { server } = await postern.database.find<{ server: string }>(`SELECT ${SERVER_STARTED} AS server`);
    const changes = postern.gateway.app.get(LostChanges);
    return async () =>
      expect(await changes.putBackEndsOf(known, server)).toMatchObject({ ends: 1, lostEntries: [] });
  },
  'a provider of a team is created': () =>
    Promise.resolve(() =>
      postern.admin('POST', '/providers', {
        ...{ name: newName(), url: 'http://127.0.0.1:9', secret: null, team: 'default' },
      }),
    ),
  'what sign-ins get from a team is changed': () => {
    const budget = String(++number);
    const change = { sign_in: { budget_usd_per_month: budget } };
    return Promise.resolve(() => postern.admin('PATCH', '/teams/default', change));
  },
  'a team is created in a group': async () => {
    const group = newName();
    await postern.admin('POST', '/groups', { name: group });
    return () => postern.admin('POST', '/teams', { name: newName(), group });
  },
  'a team moves to a group': async () => {
    const group = newName();
    await postern.admin('POST', '/groups', { name: group });
    return () => postern.admin('PATCH', '/teams/default', { group });
  },
  'a group is removed': async () => {
    const group = newName();
    await postern.admin('POST', '/groups', { name: group });
    return () => postern.admin('DELETE', `/groups/${group}`);
  },
};

// Wherever `apply` is when the request begins: it holds some tables, and waits for the next.
describe.each(Object.entries(REQUESTS))('while `apply` takes its locks, %s', (_, prepare) => {
  let waits = 0;
  // Otherwise it locks none of the tables, and the cases show nothing.
  afterAll(() => expect(waits).toBeGreaterThan(0));

  it.each([1, 2, 3, 4])('after the first %d', async (count) => {
    const request = await prepare();
    const first = LOCK.split(',').slice(0, count).join(',') + ' IN EXCLUSIVE MODE';
    await locks.around([first], request, [[LOCK]]);
    if (locks.hasWaited) waits++;
  });
});

it('a sign-in ends while `apply` is at work and has changed keys', async () => {
  const key = (name: string, rpm: number) => ({
    ...{ team: 'default', name, providers: [`default`], limits: { requests_per_minute: rpm } },
  });
  const apply = (rpm: number) =>
    postern.admin('POST', '/apply', {
      document: { keys: [key('applied-first', rpm), key('applied-later', rpm)] },
      return_secrets: true,
    });
  await apply(5);
  const { data } = await postern.admin<{ data: { id: string }[] }>('GET', '/keys?name=applied-later');
  await signedIn(postern, people);
  const signIns = '/sign-ins?state=active&limit=1';
  const [signIn] = (await postern.admin<{ data: { id: string }[] }>('GET', signIns)).data;
  await locks.other.query('BEGIN');
  await locks.other.query('SELECT FROM limit_rule WHERE scope_id = $1 FOR UPDATE', [data[0]!.id]);
  const applied = apply(6);
  await eventually(async () => (await locks.waiting()) >= 1);
  await postern.admin('DELETE', `/sign-ins/${signIn!.id}`);
  await locks.other.query('COMMIT');
  expect(await applied).toMatchObject({
    plan: [{ name: 'default/applied-first' }, { name: 'default/applied-later' }],
  });
});
