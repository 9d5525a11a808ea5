import { isOfTeams, mayUse, ROLES, type Role } from '../../src/admin/access/role.js';
import { insertRow } from '../request-log/rows.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { CONSOLE, send, signIn } from './browser.js';
import { routesOf } from './routes.js';

/** In the names of everything that belongs to the team that nobody else may see. */
const CANARY = 'canary';

interface Made {
  id: string;
  prefix: string;
}

let postern: TestGateway;
const tokens = {} as Record<Role, string>;
/** What would show that a row of the other team was reached. */
const others: string[] = [];
const other = { team: '', key: '', prefix: '', call: '' };
const own = { team: '', key: '', prefix: '', call: '' };

beforeAll(async () => {
  postern = await startTestGateway({
    NODE_ENV: 'production',
    MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
  });
  for (const [team, into] of [
    ['mine', own],
    [`${CANARY} team`, other],
  ] as const) {
    const { id: teamId } = await postern.admin<Made>('POST', '/teams', { name: team });
    await postern.admin('POST', '/groups', { name: `${team}s`, teams: [team] });
    const provider = team.replace(' ', '-');
    const account = { name: provider, url: 'http://127.0.0.1:9', secret: null, team };
    await postern.admin('POST', '/providers', account);
    const key = await postern.admin<Made>('POST', '/keys', {
      team,
      name: `${team} key`,
      budgets: [{ usd: '1.00', period: 'month' }],
    });
    const call = await insertRow(postern.database, new Date(), {
      team_id: teamId,
      key_id: key.id,
      model: `${team} model`,
      provider,
    });
    await postern.admin('POST', '/trusts', {
      ...{ name: `${team} trust`, key: key.id, issuer: 'https://issuer.example', audience: 'gateway' },
      claims: { sub: ['job'] },
    });
    Object.assign(into, { team: teamId, key: key.id, prefix: key.prefix, call });
  }
  others.push(CANARY, ...Object.values(other));
  for (const role of ROLES) {
    const body = { name: `of ${role}`, role, ...(isOfTeams(role) && { teams: ['mine'] }) };
    const { token } = await postern.admin<{ token: string }>('POST', '/tokens', body);
    tokens[role] = token;
  }
});
afterAll(() => postern.stop());

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';

/** Every route of the admin API, its parameters filled in. */
function routes(): { route: string; method: string; path: string }[] {
  return routesOf(postern)
    .filter(({ path, method }) => /^\/(admin|metrics)/.test(path) && method !== 'ALL')
    .map(({ method, path }) => ({
      route: `${method} ${path}`,
      method,
      path: path.replace(':id', ID).replace(':name', 'default'),
    }));
}

const OPEN = /^(GET|POST|DELETE) \/admin\/v1\/(session$|oidc)/;
/** Routes that other roles than `admin` may use; a lead may use those of `team`. */
const DECLARED: Record<string, readonly Role[]> = {
  'GET /metrics': ['viewer', 'metrics'],
  'POST /admin/v1/keys/find': ['viewer'],
  'POST /admin/v1/keys': ['team'],
  'GET /admin/v1/keys/allowance': ['team'],
  'PATCH /admin/v1/keys/:id': ['lead'],
  'PATCH /admin/v1/teams/:id': ['lead'],
  'POST /admin/v1/keys/:id/rotate': ['team'],
  'POST /admin/v1/keys/:id/revoke': ['team'],
  'GET /admin/v1/teams': ['viewer', 'team'],
  'GET /admin/v1/teams/:id': ['viewer', 'team'],
  'GET /admin/v1/database/regressions': ['viewer'],
  'GET /admin/v1/database/regressions/:id': ['viewer'],
  'GET /admin/v1/groups': ['viewer'],
  'GET /admin/v1/groups/:id': ['viewer'],
  'GET /admin/v1/policies': ['viewer'],
  'GET /admin/v1/policies/:id': ['viewer'],
  'GET /admin/v1/people': ['viewer'],
  'GET /admin/v1/people/:id': ['viewer'],
  'GET /admin/v1/sign-ins': ['viewer', 'team'],
  'GET /admin/v1/sign-ins/setup': ['viewer', 'team'],
  'DELETE /admin/v1/sign-ins/:id': ['viewer', 'team'],
  'GET /admin/v1/trusts': ['viewer'],
  'GET /admin/v1/trusts/:id': ['viewer'],
  'GET /admin/v1/trusts/:id/failures': ['viewer'],
  'GET /admin/v1/keys': ['viewer', 'team'],
  'GET /admin/v1/keys/counts': ['viewer', 'team'],
  'GET /admin/v1/keys/:id': ['viewer', 'team'],
  'GET /admin/v1/keys/:id/tokens': ['viewer', 'team'],
  'GET /admin/v1/refusals': ['viewer', 'team'],
  'GET /admin/v1/requests': ['viewer', 'team'],
  'GET /admin/v1/requests/recorded': ['viewer', 'team'],
  'GET /admin/v1/requests/export': ['viewer', 'team'],
  'GET /admin/v1/requests/:id': ['viewer', 'team'],
  'GET /admin/v1/usage': ['viewer', 'team'],
  'GET /admin/v1/usage/export': ['viewer', 'team'],
  'GET /admin/v1/usage/statement': ['viewer', 'team'],
  'GET /admin/v1/search': ['viewer', 'team'],
  'GET /admin/v1/limits': ['viewer', 'team'],
  'GET /admin/v1/limits/installation': ['viewer'],
  'GET /admin/v1/attention': ['viewer', 'team'],
  'GET /admin/v1/providers': ['viewer', 'lead'],
  'GET /admin/v1/providers/:name': ['viewer', 'lead'],
  'PATCH /admin/v1/providers/:name': ['lead'],
  'GET /admin/v1/routes': ['viewer'],
  'GET /admin/v1/routes/:name': ['viewer'],
  'GET /admin/v1/prices': ['viewer'],
  'GET /admin/v1/prices/resolve': ['viewer', 'team'],
  'GET /admin/v1/prices/missing': ['viewer'],
  'GET /admin/v1/prices/:id': ['viewer', 'team'],
  'GET /admin/v1/webhooks': ['viewer'],
  'GET /admin/v1/webhooks/:id': ['viewer'],
  'GET /admin/v1/webhooks/:id/deliveries': ['viewer'],
  'GET /admin/v1/jobs': ['viewer'],
  'GET /admin/v1/jobs/:id': ['viewer'],
  'GET /admin/v1/sinks': ['viewer'],
  'GET /admin/v1/sinks/:id': ['viewer'],
  'GET /admin/v1/tokens': ['viewer'],
  'GET /admin/v1/sessions': ['viewer', 'team'],
  'DELETE /admin/v1/sessions': ['viewer', 'team'],
  'DELETE /admin/v1/sessions/:id': ['viewer', 'team'],
  'GET /admin/v1/audit': ['viewer'],
  'GET /admin/v1/system': ['viewer'],
  'GET /admin/v1/system/changelog': ['viewer'],
};

const ask = (method: string, path: string, token: string) =>
  fetch(postern.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    // Invalid everywhere: nothing is changed by whoever may.
    ...(method !== 'GET' && { body: '{"surprise":1}' }),
  });

it('every endpoint of the OpenAPI document, and every declared one, is among the routes that are tried', async () => {
  const { paths } = (await (await ask('GET', '/docs-json', ADMIN_TOKEN)).json()) as {
    paths: Record<string, Record<string, object>>;
  };
  const documented = Object.entries(paths)
    .flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`),
    )
    .filter((route) => /^\w+ \/admin/.test(route));
  expect(documented.length).toBeGreaterThan(40);
  const tried = new Set(routes().map(({ route }) => route));
  expect([...documented, ...Object.keys(DECLARED)].filter((route) => !tried.has(route))).toEqual([]);
});

describe.each(ROLES)('the role %s', (role) => {
  it('may use the routes that are declared for it, and no other', async () => {
    const wrong: string[] = [];
    for (const { route, method, path } of routes().filter(({ route }) => !OPEN.test(route))) {
      // What a developer has not declared is for administrators.
      const may = mayUse(role, DECLARED[route]);
      const { status, headers } = await ask(method, path, tokens[role]);
      // No cache may keep it, also with a cookie in place of Authorization.
      if (headers.get('cache-control') !== 'no-store')
        wrong.push(`${route}: ${headers.get('cache-control')}`);
      // What nobody meant to remove.
      if (method === 'DELETE' && may) expect(status).toBeGreaterThanOrEqual(400);
      if ((status === 403) === may || status === 401)
        wrong.push(
          `${route}: ${status}` + (may ? '' : `; if ${role} shall use it, add it to DECLARED in this file`),
        );
    }
    expect(wrong).toEqual([]);
  });

  it('is the same in a session, which the role metrics cannot begin', async () => {
    if (role === 'metrics') {
      await expect(signIn(postern, tokens[role])).rejects.toThrow('403');
      return;
    }
    const cookie = await signIn(postern, tokens[role]);
    const { session } = (await send(postern, 'GET /admin/v1/session', [cookie])).json();
    const teams = isOfTeams(role) ? [{ id: own.team, name: 'mine' }] : null;
    expect(session).toMatchObject({ actor: `token:of ${role}`, role, teams });
    const make = (name: string) =>
      send(postern, 'POST /admin/v1/teams', [cookie, ...CONSOLE], JSON.stringify({ name }));
    expect((await make(`made by ${role}`)).status).toBe(role === 'admin' ? 201 : 403);
    expect((await send(postern, 'GET /admin/v1/audit', [cookie])).status).toBe(isOfTeams(role) ? 403 : 200);
  });

  it('opens the documentation, except for the metrics', async () => {
    const { status } = await ask('GET', '/docs-json', tokens[role]);
    expect(status).toBe(role === 'metrics' ? 403 : 200);
  });
});

describe.each(['team', 'lead'] as const)('the role %s', (role) => {
  const from = encodeURIComponent(new Date(Date.now() - 3_600_000).toISOString());
  const FILTERS = () => [
    '',
    `team=${other.team}`,
    `team=${encodeURIComponent(`${CANARY} team`)}`,
    `group=${CANARY}%20teams`,
    `key=${other.key}`,
    `key=${other.prefix}`,
    `model=${encodeURIComponent(`${CANARY} model`)}`,
    `provider=${CANARY}-team`,
    `from=${from}`,
  ];
  const GROUPS = [
    'group',
    'team',
    'key',
    'provider',
    'model',
    'end_user',
    'session',
    'tag:a',
    'team,key,model,provider,hour',
  ];
  const PATHS = () => [
    '/teams',
    '/teams?limit=1',
    `/teams?cursor=${cursorOf(other.team)}`,
    `/keys?cursor=${cursorOf(other.key)}`,
    `/requests?cursor=${cursorOf(other.call)}`,
    `/requests/recorded?recorded_after=${from}&cursor=${cursorOf(other.call)}`,
    `/limits?cursor=${cursorOf(other.key)}`,
    `/teams/${other.team}`,
    `/teams/${encodeURIComponent(`${CANARY} team`)}`,
    '/keys',
    `/keys?team=${other.team}`,
    `/keys?prefix=${other.prefix}`,
    `/keys?name=${encodeURIComponent(`${CANARY} team key`)}`,
    `/keys/${other.key}`,
    `/keys/${other.key}/tokens`,
    `/keys/${own.key}/tokens`,
    '/trusts',
    `/trusts/${encodeURIComponent(`${CANARY} trust`)}`,
    '/keys?search=ana',
    `/keys?id=${other.key},${own.key}`,
    '/keys/counts',
    '/teams?search=ana',
    `/teams?group=${CANARY}%20teams`,
    '/groups',
    `/groups/${CANARY}%20teams`,
    '/search?q=ana',
    '/search?q=min',
    ...[other.team, other.key, other.prefix, other.call, `${CANARY}%20model`, `${CANARY}%20team`].map(
      (text) => `/search?q=${text}`,
    ),
    `/requests/${other.call}`,
    ...FILTERS().flatMap((filter) => [
      `/requests?${filter}`,
      `/requests/export?format=csv&${filter}`,
      `/requests/export?format=ndjson&${filter}`,
      ...(filter.startsWith('from') ? [] : [`/requests/recorded?recorded_after=${from}&${filter}`]),
      ...GROUPS.map((group) => `/usage?group_by=${group}&${filter}`),
      ...GROUPS.map((group) => `/usage?group_by=${group}&sort=cost&tz=Asia/Kathmandu&${filter}`),
    ]),
    '/limits',
    `/limits?team=${other.team}`,
    `/limits?key=${other.key}`,
    '/audit',
    `/audit?subject_id=${other.key}`,
    '/providers',
    `/providers/${CANARY}-team`,
    '/prices',
    '/tokens',
  ];

  const cursorOf = (id: string) => Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url');

  /** A request may repeat what was asked for in an error, so only what was found counts. */
  const reached = (text: string, path: string) =>
    others.filter((value) => text.includes(value) && !decodeURIComponent(path).includes(value));

  it('reaches no row of another team: not in lists, by ID, in exports, in sums', async () => {
    const found: string[] = [];
    let shown = 0;
    for (const path of PATHS()) {
      const response = await ask('GET', `/admin/v1${path}`, tokens[role]);
      const text = await response.text();
      if (response.status === 200 && /mine/.test(text)) shown++;
      found.push(...reached(text, path).map((value) => `${path}: ${value}`));
      // Sums name nobody: they must not count what is hidden.
      if (path.startsWith('/usage') && response.status === 200) {
        const { totals } = JSON.parse(text) as { totals: { calls: number } };
        if (totals.calls > 1) found.push(`${path}: ${totals.calls} calls`);
      }
      if (/canary|=/.test(path) && path.includes(other.team) && !path.startsWith('/search'))
        expect([403, 404]).toContain(response.status);
    }
    expect(found).toEqual([]);
    // Its own rows it does see.
    expect(shown).toBeGreaterThan(20);
  });

  it('would be told apart by this: an administrator reaches them all', async () => {
    const found = new Set<string>();
    for (const path of PATHS()) {
      const text = await (await ask('GET', `/admin/v1${path}`, tokens.admin)).text();
      if (others.some((value) => text.includes(value))) found.add(path.split(/[/?]/)[1]!);
    }
    expect([...found].sort()).toEqual([
      'audit',
      'groups',
      'keys',
      'limits',
      'providers',
      'requests',
      'search',
      'teams',
      'trusts',
      'usage',
    ]);
  });

  it('sees nothing at all once its teams are none', async () => {
    await postern.database.query(`UPDATE admin_token SET teams = '{}' WHERE role = $1`, [role]);
    const text = await (await ask('GET', '/admin/v1/requests', tokens[role])).text();
    expect(JSON.parse(text)).toEqual({ data: [], next_cursor: null, source: 'log' });
    await postern.database.query('UPDATE admin_token SET teams = ARRAY[$1::uuid] WHERE role = $2', [
      own.team,
      role,
    ]);
  });
});

describe('a token', () => {
  it('is stored as a digest only, and never shown again', async () => {
    const { token, id, prefix } = await postern.admin<Made & { token: string }>('POST', '/tokens', {
      name: 'shown once',
      role: 'viewer',
    });
    expect(token).toMatch(/^pta_[0-9A-Za-z]{38}$/);
    expect(prefix).toBe(token.slice(0, 12));
    expect(JSON.stringify(await postern.admin('GET', '/tokens'))).not.toContain(token);
    const dump = await postern.database.query(
      'SELECT admin_token::text, audit_log::text FROM admin_token, audit_log',
    );
    expect(JSON.stringify(dump)).not.toContain(token);
    expect(await postern.admin('GET', '/audit?subject_type=token&subject_name=shown%20once')).toMatchObject({
      data: [{ subject_id: id, actor: 'admin-token', after: { role: 'viewer', teams: null } }],
    });
  });

  it('is named in the audit log for what it does', async () => {
    const response = await fetch(`${postern.url}/admin/v1/teams`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tokens.admin}`, 'content-type': 'application/json' },
      body: '{"name":"audited"}',
    });
    expect(response.status).toBe(201);
    expect(await postern.admin('GET', '/audit?subject_name=audited')).toMatchObject({
      data: [{ actor: 'token:of admin' }],
    });
  });

  it('ends with its sessions, on every replica, when it is revoked or expires', async () => {
    const replica = await startTestGateway({}, postern.database);
    for (const end of ['revoke', 'expire']) {
      const { token, id } = await postern.admin<Made & { token: string }>('POST', '/tokens', {
        name: `to ${end}`,
        role: 'viewer',
        expires_at: new Date(Date.now() + 3_600_000).toISOString(),
      });
      const cookie = await signIn(postern, token);
      const statuses = async () => [
        (await fetch(`${replica.url}/admin/v1/keys`, { headers: { authorization: `Bearer ${token}` } }))
          .status,
        (await send(replica, 'GET /admin/v1/keys', [cookie])).status,
      ];
      expect(await statuses()).toEqual([200, 200]);
      if (end === 'revoke') {
        const revoked = await ask('DELETE', `/admin/v1/tokens/${id}`, ADMIN_TOKEN);
        expect(revoked.status).toBe(204);
      } else {
        await postern.database.query('UPDATE admin_token SET expires_at = now() WHERE id = $1', [id]);
      }
      expect(await statuses()).toEqual([401, 401]);
    }
    await replica.stop();
  });

  it('is remembered as used', async () => {
    await ask('GET', '/metrics', tokens.metrics);
    const { data } = await postern.admin<{ data: { role: string; last_used_at: string | null }[] }>(
      'GET',
      '/tokens',
    );
    expect(data.find(({ role }) => role === 'metrics')?.last_used_at).not.toBeNull();
  });

  it.each([
    [{ name: 'x', role: 'team' }, 'teams'],
    [{ name: 'x', role: 'viewer', teams: ['mine'] }, 'teams'],
    [{ name: 'x', role: 'lead' }, 'teams'],
    [{ name: 'x', role: 'team', teams: [] }, 'teams'],
    [{ name: 'x', role: 'root' }, 'role'],
    [{ name: 'x', role: 'viewer', expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
  ])('is not made of %j', async (body, field) => {
    await expect(postern.admin('POST', '/tokens', body)).rejects.toThrow(`"field":"${field}"`);
  });

  it('has a name of its own, and teams that exist', async () => {
    const twice = { name: 'of viewer', role: 'viewer' };
    await expect(postern.admin('POST', '/tokens', twice)).rejects.toThrow('409');
    const nobody = { name: 'y', role: 'team', teams: ['nobody'] };
    await expect(postern.admin('POST', '/tokens', nobody)).rejects.toThrow('404');
  });

  it('with a wrong checksum is rejected without a query, and counted', async () => {
    const wrong = `${tokens.admin.slice(0, -1)}${tokens.admin.endsWith('a') ? 'b' : 'a'}`;
    expect((await ask('GET', '/admin/v1/keys', wrong)).status).toBe(401);
  });
});
