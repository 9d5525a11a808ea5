import { createHmac } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { loadEnv } from '../../src/config/env.js';
import { FlowCookie } from '../../src/admin/oidc/flow-cookie.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import type { ReceivedResponse } from '../support/raw-client.js';
import { CONSOLE, send, signIn } from './browser.js';
import { CLIENT_SECRET, OpenIdProvider } from './openid-provider.js';
import { unusedPort } from '../support/unused-port.js';

/** What the provider says of its users, by their names. */
const users: Record<string, Record<string, unknown>> = {
  admin: { groups: ['staff', 'llm-admins'], email: 'ada@example.com', email_verified: true },
  viewer: { groups: ['llm-viewers'], email: 'vic@example.com', email_verified: false },
  member: {
    groups: ['postern-team-default', 'postern-team-nobody'],
    email: 'mia@example.com',
    email_verified: true,
  },
  lead: { groups: ['postern-team-other', 'postern-lead-default', 'postern-lead-nobody'] },
  // Of providers that do not say whose address it is.
  unverified: { groups: ['postern-team-default'], email: 'mia@example.com' },
  boss: { groups: ['llm-admins'], email: 'bo@example.com', email_verified: true },
  // Of somebody who was given the address of another, and of somebody whom the provider calls by it.
  heir: { groups: ['postern-team-default'], email: 'mia@example.com', email_verified: true },
  'mia@example.com': { groups: ['postern-team-default'] },
  hidden: { groups: ['llm-admins'], email: 'ada\u200b@example.com', email_verified: true },
  hostile: {
    groups: [
      '<script>alert(1)</script>',
      'x'.repeat(5_000),
      ...Array.from({ length: 80 }, (_, i) => `g${i}`),
    ],
  },
  stranger: { groups: ['staff', 'postern-team-nobody', 'xpostern-team-default', 'LLM-ADMINS'] },
  nobody: {},
  odd: { groups: { 'llm-admins': true } },
};

let names = 0;
let issuer: OpenIdProvider;
let postern: TestGateway;

beforeAll(async () => {
  // The provider says at length that it is one for tests.
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  const port = await unusedPort();
  const publicUrl = `http://127.0.0.1:${port}`;
  issuer = await OpenIdProvider.start(publicUrl, users);
  postern = await startTestGateway({
    PORT: String(port),
    PUBLIC_URL: publicUrl,
    OIDC_ISSUER: issuer.url,
    OIDC_CLIENT_ID: 'postern',
    OIDC_CLIENT_SECRET: CLIENT_SECRET,
    OIDC_ADMINS: 'llm-admins, more',
    OIDC_VIEWERS: 'llm-viewers',
    OIDC_TEAM_PREFIX: 'postern-team-',
    OIDC_LEAD_PREFIX: 'postern-lead-',
  });
});
afterAll(async () => {
  await postern.stop();
  await issuer.stop();
});
beforeEach(() => {
  issuer.tamper = (nonce) => nonce;
});

const cookiesOf = (answer: ReceivedResponse) =>
  answer.headers.filter(([name]) => name.toLowerCase() === 'set-cookie').map(([, value]) => value);
const pairOf = (cookie: string) => cookie.split(';')[0]!;

async function start(query = ''): Promise<{ location: URL; cookie: string; attributes: string }> {
  const answer = await send(postern, `GET /admin/v1/oidc/start${query}`);
  expect(answer.status).toBe(302);
  const [cookie] = cookiesOf(answer);
  return { location: new URL(answer.header('location')!), cookie: pairOf(cookie!), attributes: cookie! };
}

/** What a browser does at the provider. @returns path and query of the callback */
async function atProvider(location: URL, as: string): Promise<string> {
  issuer.user = as;
  const jar = new Map<string, string>();
  let url = location;
  for (let hops = 0; hops < 10; hops++) {
    if (url.pathname === '/admin/v1/oidc/callback') return url.pathname + url.search;
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const set of response.headers.getSetCookie()) {
      const [name = '', value = ''] = pairOf(set).split(/=(.*)/s);
      jar.set(name, value);
    }
    const next = response.headers.get('location');
    if (next === null) throw new Error(`${response.status} ${await response.text()}`);
    url = new URL(next, url);
  }
  throw new Error('too many redirects');
}

const finish = (target: string, cookie: string) => send(postern, `GET ${target}`, [`Cookie: ${cookie}`]);

async function signInAs(name: string, query = ''): Promise<ReceivedResponse> {
  const { location, cookie } = await start(query);
  return finish(await atProvider(location, name), cookie);
}

const sessionOf = async (answer: ReceivedResponse) => {
  const cookie = cookiesOf(answer).find((text) => text.startsWith('postern_session='))!;
  const shown = await send(postern, 'GET /admin/v1/session', [`Cookie: ${pairOf(cookie)}`]);
  return { cookie, session: shown.json().session as Record<string, string> };
};

/** Of single sign-on, for a replica. */
const settings = () => ({
  PUBLIC_URL: postern.url,
  OIDC_ISSUER: issuer.url,
  OIDC_CLIENT_ID: 'postern',
  OIDC_CLIENT_SECRET: CLIENT_SECRET,
  OIDC_ADMINS: 'llm-admins, more',
  OIDC_VIEWERS: 'llm-viewers',
  OIDC_TEAM_PREFIX: 'postern-team-',
  OIDC_LEAD_PREFIX: 'postern-lead-',
});

/** The Cookie header of a new session. */
const sessionCookie = async (name: string) =>
  `Cookie: ${pairOf(cookiesOf(await signInAs(name)).find((text) => text.startsWith('postern_session='))!)}`;

describe('single sign-on', () => {
  it('is shown, and redirects to the provider with PKCE, state and nonce', async () => {
    expect((await send(postern, 'GET /admin/v1/oidc')).json()).toEqual({ enabled: true });
    const { location, attributes } = await start();
    expect(location.origin).toBe(issuer.url);
    const { state, nonce, code_challenge: challenge, ...rest } = Object.fromEntries(location.searchParams);
    expect([state!.length, nonce!.length, challenge!.length]).toEqual([43, 43, 43]);
    expect(rest).toEqual({
      client_id: 'postern',
      response_type: 'code',
      code_challenge_method: 'S256',
      scope: 'openid profile email',
      redirect_uri: `${postern.url}/admin/v1/oidc/callback`,
    });
    expect(attributes).toMatch(/^postern_oidc=[\w.-]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/);
  });

  it.each([
    ['admin', 'admin', 'sso:ada@example.com'],
    ['viewer', 'viewer', 'sso:sub:viewer'],
    ['member', 'team', 'sso:mia@example.com'],
    ['unverified', 'team', 'sso:sub:unverified'],
    ['lead', 'lead', 'sso:sub:lead'],
  ])('signs %s in with the role %s', async (name, role, actor) => {
    const answer = await signInAs(name);
    expect(answer.status).toBe(200);
    const { cookie, session } = await sessionOf(answer);
    expect(cookie).toMatch(/Max-Age=28800; HttpOnly; SameSite=Strict$/);
    expect(session).toMatchObject({ actor, role });
    expect(Date.parse(session.expires_at!) - Date.parse(session.created_at!)).toBe(8 * 3_600_000);
    // Of the teams that they lead only, also if they belong to others.
    if (role === 'team' || role === 'lead')
      expect(session.teams).toEqual([expect.objectContaining({ name: 'default' })]);
  });

  it('answers with a page of this origin that continues, and ends the flow', async () => {
    const answer = await signInAs('admin', '?return_to=%2Fconsole%2Fusage%3Fgroup%3Dteam%26x%3D%2522');
    const html = answer.body.toString();
    expect(html).toContain(
      '<meta http-equiv="refresh" content="0; url=/console/usage?group=team&#38;x=%22">',
    );
    expect(html).not.toContain('<script');
    expect(answer.header('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(answer.header('referrer-policy')).toBe('no-referrer');
    expect(cookiesOf(answer)[0]).toBe('postern_oidc=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax');
  });

  it.each([
    'https://evil.example/',
    '//evil.example',
    '/\\evil.example',
    '/console\\..\\x',
    '/consoles',
    '/console@evil.example',
    '/console.evil.example',
    '/other',
    'javascript:alert(1)',
  ])('does not lead to %s afterwards', async (target) => {
    const answer = await signInAs('admin', `?return_to=${encodeURIComponent(target)}`);
    expect(answer.body.toString()).toContain('content="0; url=/console">');
  });

  it.each(['stranger', 'nobody', 'odd'])(
    'lets %s in nowhere: none of the groups has a role',
    async (name) => {
      const before = await postern.database.query('SELECT FROM admin_session');
      const answer = await signInAs(name);
      expect(answer.status).toBe(403);
      expect(answer.body.toString()).toContain('None of your groups');
      expect(cookiesOf(answer).filter((cookie) => cookie.startsWith('postern_session'))).toEqual([]);
      expect(await postern.database.query('SELECT FROM admin_session')).toHaveLength(before.length);
    },
  );
});

describe('whom no group gives a role', () => {
  const refused = async (name: string) => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    const html = (await signInAs(name)).body.toString();
    const line = warn.mock.calls
      .map(([text]) => String(text))
      .find((text) => text.includes('may not sign in'));
    warn.mockRestore();
    return { html, line };
  };

  it('is told who they are, which groups came, and which team does not exist; and so is the log', async () => {
    const { html, line } = await refused('stranger');
    for (const text of [
      'sso:sub:stranger',
      '<code>staff</code>',
      '<code>LLM-ADMINS</code>',
      '<code>groups</code>',
    ])
      expect(html).toContain(text);
    expect(html).toContain('There is no team <code>nobody</code> here.');
    // Of the mapping only the names of the settings: strangers see this page.
    expect(html).not.toContain('llm-admins');
    expect(line).toContain('["staff","postern-team-nobody","xpostern-team-default","LLM-ADMINS"]');
    expect(line).toContain('OIDC_ADMINS ["llm-admins","more"], OIDC_VIEWERS ["llm-viewers"]');
    expect(line).toContain('OIDC_LEAD_PREFIX "postern-lead-", OIDC_TEAM_PREFIX "postern-team-"');
    expect(line).toContain('Teams that do not exist: ["nobody"].');
  });

  it.each(['nobody', 'odd'])('is told that no groups came: %s', async (name) => {
    const { html } = await refused(name);
    expect(html).toContain('The sign-in provider sent no groups');
    expect(html).toContain('OIDC_ROLE_CLAIM');
  });

  it('cannot write into the page or fill it', async () => {
    const { html, line } = await refused('hostile');
    expect(html).toContain('&#60;script&#62;');
    expect(html).not.toContain('<script');
    expect(html).toContain('and 32 more');
    expect(html.length).toBeLessThan(10_000);
    expect(line!.length).toBeLessThan(2_000);
  });
});

it('an e-mail address with characters that nobody sees is rejected: it would look like that of another', async () => {
  const answer = await signInAs('hidden');
  expect(answer.status).toBe(403);
  expect(answer.body.toString()).toContain('invisible characters');
  expect(cookiesOf(answer).filter((cookie) => cookie.startsWith('postern_session'))).toEqual([]);
});

it('a user is the one whom the provider knows by this ID, whatever the name', async () => {
  const { session } = await sessionOf(await signInAs('member'));
  expect(session).toMatchObject({ actor: 'sso:mia@example.com', user_id: `sso:${issuer.url}#member` });
});

describe('a key of a user of single sign-on', () => {
  beforeAll(() =>
    postern.admin('PATCH', '/teams/default', { self_service: { keys_per_user: 20, max_days: 30 } }),
  );

  /** Statuses of the rotation by each of these users. */
  const rotatedBy = async (id: string, ...names: string[]) => {
    const statuses: number[] = [];
    for (const name of names) {
      const headers = [await sessionCookie(name), ...CONSOLE];
      statuses.push((await send(postern, `POST /admin/v1/keys/${id}/rotate`, headers, '{}')).status);
    }
    return statuses;
  };
  const create = async (name: string) => {
    const headers = [await sessionCookie(name), ...CONSOLE];
    const body = JSON.stringify({ team: 'default', name: `of ${name} ${++names}` });
    return (await send(postern, 'POST /admin/v1/keys', headers, body)).json() as Record<string, string>;
  };

  it('is theirs alone, whoever has their address later or is called by it', async () => {
    const { id, owner, owner_id } = await create('member');
    expect([owner, owner_id]).toEqual(['sso:mia@example.com', `sso:${issuer.url}#member`]);
    expect(await rotatedBy(id!, 'member', 'heir', 'mia@example.com', 'unverified')).toEqual([
      200, 403, 403, 403,
    ]);
  });

  it('that an earlier version created is theirs by the name', async () => {
    const asBefore = (id: string, owner: string) =>
      postern.database.query('UPDATE gateway_key SET owner_id = NULL, owner = $2 WHERE id = $1', [id, owner]);
    const byAddress = await create('member');
    await asBefore(byAddress.id!, 'sso:mia@example.com');
    expect(await rotatedBy(byAddress.id!, 'member', 'mia@example.com', 'unverified')).toEqual([
      200, 403, 403,
    ]);
    const byId = await create('unverified');
    await asBefore(byId.id!, 'sso:unverified');
    expect(await rotatedBy(byId.id!, 'unverified', 'member')).toEqual([200, 403]);
  });
});

describe('a session of single sign-on', () => {
  it.each([
    ['the same settings, whatever the secret is', { OIDC_CLIENT_SECRET: 'another' }, 200],
    ['another issuer', { OIDC_ISSUER: 'https://login.example' }, 401],
    ['another client', { OIDC_CLIENT_ID: 'other' }, 401],
    ['other administrators', { OIDC_ADMINS: 'more' }, 401],
    ['other viewers', { OIDC_VIEWERS: '' }, 401],
    ['another prefix of teams', { OIDC_TEAM_PREFIX: 'team-' }, 401],
    ['another prefix of leads', { OIDC_LEAD_PREFIX: 'lead-' }, 401],
    ['another claim', { OIDC_ROLE_CLAIM: 'roles' }, 401],
    ['none of them', null, 401],
  ])('with %s: %j gives %i', async (_, change, status) => {
    const cookie = await sessionCookie('boss');
    const token = await signIn(postern, ADMIN_TOKEN);
    const variables = change === null ? { PUBLIC_URL: postern.url } : { ...settings(), ...change };
    const replica = await startTestGateway(variables, postern.database);
    expect((await send(replica, 'GET /admin/v1/keys', [cookie])).status).toBe(status);
    const shown = await send(replica, 'GET /admin/v1/sessions?limit=1&actor=sso:bo@example.com', [token]);
    expect((shown.json().data as object[]).length).toBe(status === 200 ? 1 : 0);
    // A replica that has the settings it began with, and sessions of tokens, go on.
    expect((await send(postern, 'GET /admin/v1/keys', [cookie])).status).toBe(200);
    await replica.stop();
  });

  it('that an earlier version began has ended: it is bound to no settings', async () => {
    const cookie = await sessionCookie('boss');
    await postern.database.query('UPDATE admin_session SET settings = NULL, user_id = NULL');
    expect((await send(postern, 'GET /admin/v1/keys', [cookie])).status).toBe(401);
  });

  it('gives its user a token that expires after 90 days at most, and so do the tokens that this one creates', async () => {
    const days = (count: number) => new Date(Date.now() + count * 86_400_000).toISOString();
    const create = async (headers: string[], body: object) => {
      const given = JSON.stringify({ name: `of bo ${++names}`, role: 'admin', ...body });
      const answer = await send(postern, 'POST /admin/v1/tokens', [...CONSOLE, ...headers], given);
      return { status: answer.status, ...(answer.json() as { token: string; expires_at: string | null }) };
    };
    const cookie = await sessionCookie('boss');
    const first = await create([cookie], {});
    expect(first.status).toBe(201);
    expect(Math.abs(Date.parse(first.expires_at!) - Date.parse(days(90)))).toBeLessThan(60_000);
    expect((await create([cookie], { expires_at: days(91) })).status).toBe(400);
    const sooner = days(1);
    const second = await create([cookie], { expires_at: sooner });
    expect(second.expires_at).toBe(sooner);
    const bearer = `Authorization: Bearer ${second.token}`;
    expect((await create([bearer], {})).expires_at).toBe(sooner);
    expect((await create([bearer], { expires_at: days(2) })).status).toBe(400);
    const session = await signIn(postern, second.token);
    expect((await create([session], {})).expires_at).toBe(sooner);
    expect((await create([`Authorization: Bearer ${ADMIN_TOKEN}`], {})).expires_at).toBeNull();
  });
});

describe('the callback', () => {
  const isRejected = async (pending: ReceivedResponse | Promise<ReceivedResponse>) => {
    const answer = await pending;
    expect(answer.status).toBe(400);
    expect(cookiesOf(answer).filter((cookie) => cookie.startsWith('postern_session'))).toEqual([]);
  };

  it('is rejected in a browser that did not begin the sign-in', async () => {
    const { location } = await start();
    const target = await atProvider(location, 'admin');
    await isRejected(await send(postern, `GET ${target}`));
  });

  it('is rejected with the flow of another sign-in: its state is another', async () => {
    const victim = await start();
    const { location } = await start();
    await isRejected(await finish(await atProvider(location, 'admin'), victim.cookie));
  });

  it('is rejected the second time, also with a cookie that was kept, on every replica, and asks the provider once', async () => {
    const { location, cookie } = await start();
    const target = await atProvider(location, 'admin');
    const before = issuer.tokenRequests;
    const wrong = target.replace(/code=[^&]+/, 'code=guessed');
    const all = await Promise.all(Array.from({ length: 5 }, () => finish(wrong, cookie)));
    for (const answer of all) await isRejected(answer);
    await isRejected(await finish(target, cookie));
    expect(issuer.tokenRequests - before).toBe(1);
    const next = await start();
    const second = await atProvider(next.location, 'viewer');
    expect((await finish(second, next.cookie)).status).toBe(200);
    await isRejected(await finish(second, next.cookie));
    const replica = await startTestGateway(settings(), postern.database);
    const elsewhere = await send(replica, `GET ${second}`, [`Cookie: ${next.cookie}`]);
    await isRejected(elsewhere);
    expect(elsewhere.body.toString()).toContain('was used already');
    await replica.stop();
  });

  it('leaves nothing behind unless the provider confirms it, so that nobody can fill the table', async () => {
    const count = async () => (await postern.database.query('SELECT FROM admin_sign_in')).length;
    const before = await count();
    for (let i = 0; i < 5; i++) {
      const { location, cookie } = await start();
      const state = location.searchParams.get('state')!;
      const iss = encodeURIComponent(issuer.url);
      await isRejected(
        await finish(`/admin/v1/oidc/callback?code=guessed&state=${state}&iss=${iss}`, cookie),
      );
    }
    expect(await count()).toBe(before);
  });

  it('is rejected with another nonce in the ID token', async () => {
    issuer.tamper = (nonce) => nonce.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'));
    await isRejected(await signInAs('admin'));
  });

  it('is rejected with another code verifier, with another code, and without one', async () => {
    const key = new FlowCookie(postern.url, ADMIN_TOKEN);
    const isRejectedWith = async (change: (target: string) => string, verifier?: string) => {
      const { location, cookie } = await start();
      const target = await atProvider(location, 'admin');
      const flow = (await key.of({ headers: { cookie } } as never))!;
      const given = verifier === undefined ? cookie : pairOf(await key.set({ ...flow, verifier }));
      const answer = await finish(change(target), given);
      await isRejected(answer);
      expect(answer.body.toString()).toContain('did not confirm');
    };
    await isRejectedWith((target) => target, 'x'.repeat(43));
    await isRejectedWith((target) => target.replace(/code=[^&]+/, 'code=guessed'));
    await isRejectedWith((target) => target.replace(/code=[^&]+&/, ''));
    await isRejectedWith(() => '/admin/v1/oidc/callback?error=access_denied');
  });

  it('is rejected with a cookie that was changed, signed by another, or has ended', async () => {
    const { location, cookie } = await start();
    const target = await atProvider(location, 'admin');
    const [payload = '', signature = ''] = cookie.slice('postern_oidc='.length).split('.');
    const content = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
    const changed = Buffer.from(JSON.stringify({ ...content, returnTo: '/console/x' })).toString('base64url');
    await isRejected(await finish(target, `postern_oidc=${changed}.${signature}`));
    // Anybody can get a cookie: it gives no fast way to test what ADMIN_TOKEN may be.
    expect(signature).toHaveLength(43);
    expect(signature).not.toBe(
      createHmac('sha256', ADMIN_TOKEN).update(`oidc:${payload}`).digest('base64url'),
    );
    const foreign = new FlowCookie(postern.url, 'another-admin-token-012');
    await isRejected(await finish(target, pairOf(await foreign.set(content as never))));
    jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 601_000);
    const old = pairOf(await new FlowCookie(postern.url, ADMIN_TOKEN).set(content as never));
    jest.restoreAllMocks();
    await isRejected(await finish(target, old));
  });
});

it('an unreachable provider is reported, and tried again the next time', async () => {
  const port = await unusedPort();
  const other = await startTestGateway(
    {
      PUBLIC_URL: 'https://gateway.example',
      OIDC_ISSUER: `http://127.0.0.1:${port}`,
      OIDC_CLIENT_ID: 'postern',
      OIDC_CLIENT_SECRET: CLIENT_SECRET,
      OIDC_ADMINS: 'llm-admins',
    },
    postern.database,
  );
  for (let i = 0; i < 2; i++) expect((await send(other, 'GET /admin/v1/oidc/start')).status).toBe(502);
  await other.stop();
});

it('PUBLIC_URL decides that cookies are Secure, whatever the request says', async () => {
  const behind = await startTestGateway({ PUBLIC_URL: 'https://gateway.example' }, postern.database);
  const headers = ['Content-Type: application/json', 'Sec-Fetch-Site: same-origin'];
  const answer = await send(
    behind,
    'POST /admin/v1/session',
    headers,
    JSON.stringify({ token: ADMIN_TOKEN }),
  );
  expect(answer.header('set-cookie')).toMatch(/^__Host-postern=.* Secure;/);
  const value = pairOf(answer.header('set-cookie')!).split('=')[1]!;
  const plain = await send(behind, 'GET /admin/v1/keys', [`Cookie: postern_session=${value}`]);
  expect(plain.status).toBe(401);
  await behind.stop();
});

it('without OIDC_ISSUER there is none', async () => {
  const without = await startTestGateway({}, postern.database);
  expect((await send(without, 'GET /admin/v1/oidc')).json()).toEqual({ enabled: false });
  expect((await send(without, 'GET /admin/v1/oidc/start')).status).toBe(404);
  expect((await send(without, 'GET /admin/v1/oidc/callback?code=x')).status).toBe(400);
  await without.stop();
});

it.each([
  [
    { OIDC_ISSUER: 'https://login.example' },
    ['PUBLIC_URL', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_ADMINS'],
  ],
  [{ OIDC_CLIENT_ID: 'x' }, ['OIDC_ISSUER']],
  // Each group of leads would name a team of members, too.
  [
    {
      OIDC_ISSUER: 'https://login.example',
      PUBLIC_URL: 'https://x.example',
      OIDC_CLIENT_ID: 'x',
      OIDC_CLIENT_SECRET: 'x',
      OIDC_TEAM_PREFIX: 'postern-',
      OIDC_LEAD_PREFIX: 'postern-lead-',
    },
    ['OIDC_LEAD_PREFIX'],
  ],
  [{ PUBLIC_URL: 'https://gateway.example/path' }, ['PUBLIC_URL']],
  [{ PUBLIC_URL: 'http://gateway.example' }, ['PUBLIC_URL']],
  [{ OIDC_SCOPES: 'profile' }, ['OIDC_SCOPES']],
])('%j does not start', (variables, names) => {
  let message = '';
  try {
    loadEnv(variables);
  } catch (error) {
    message = (error as Error).message;
  }
  for (const name of names) expect(message).toContain(`${name}: `);
});
