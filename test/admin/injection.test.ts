import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { call } from './call.js';

let postern: TestGateway;
let before: unknown;
beforeAll(async () => {
  postern = await startTestGateway();
  for (const name of ['one', 'two']) await call(postern, 'POST', '/teams', { name });
  await call(postern, 'POST', '/providers', { name: 'stored', url: 'http://127.0.0.1:9', secret: null });
  before = await everything();
});
afterAll(() => postern.stop());

/** Words that a statement put together as text would run, and those that LIKE would read as "anything". */
const WORDS = [
  "' OR '1'='1",
  "'; DROP TABLE gateway_key; --",
  "x' UNION SELECT encode(digest, 'hex') FROM gateway_key_secret --",
  "\\'; SELECT pg_sleep(60); --",
  '$$; DELETE FROM team; $$',
  '1; UPDATE team SET disabled = true',
  "E'\\\\x27",
  '%',
  '_',
  '%%%',
  '____',
  'def%',
  '*',
  '.*',
  '{"$ne": null}',
  '../../etc/passwd',
  '${7*7}',
  '\u0000',
  '\ud800',
];

async function everything(): Promise<unknown> {
  const tables = ['team', 'gateway_key', 'gateway_key_secret', 'provider', 'audit_log'];
  return Promise.all(tables.map((table) => postern.database.query(`SELECT * FROM ${table} ORDER BY id`)));
}

const LISTS: Record<string, string[]> = {
  '/teams': ['limit', 'cursor'],
  '/keys': ['team', 'prefix', 'status', 'limit', 'cursor'],
  '/requests': [
    'team',
    'key',
    'provider',
    'model',
    'status',
    'outcome',
    'failed',
    'min_duration_ms',
    'from',
    'to',
    'recorded_after',
    'limit',
  ],
  '/requests/export': ['format', 'team', 'key', 'provider', 'model', 'status', 'outcome', 'limit'],
  '/usage': ['group_by', 'team', 'key', 'provider', 'model', 'status', 'outcome', 'from', 'cursor'],
  '/audit': ['actor', 'action', 'subject_type', 'subject_id', 'subject_name', 'from', 'to', 'cursor'],
  '/providers': ['name', 'limit'],
};

const fields = Object.entries(LISTS).flatMap(([path, names]) => names.map((name) => [path, name] as const));

describe('words of SQL and wildcards', () => {
  it.each(fields)('in %s?%s= find nothing and break nothing', async (path, name) => {
    for (const word of WORDS) {
      const url = `${postern.url}/admin/v1${path}?${name}=${encodeURIComponent(word.toWellFormed())}`;
      const response = await fetch(url, { headers: { authorization: 'Bearer test-admin-token-0123456789' } });
      const text = await response.text();
      expect([word, response.status >= 500]).toEqual([word, false]);
      if (response.status === 200) {
        // No row is like a word that only a wildcard or an injected condition could match.
        const data = path.endsWith('export') ? text.trim() : (JSON.parse(text) as { data: object[] }).data;
        expect([word, data]).toEqual([word, path.endsWith('export') ? '' : []]);
      }
      expect(text).not.toMatch(/syntax error|pg_|SELECT|relation "/);
    }
  });

  it.each([
    ['GET', '/teams/'],
    ['PATCH', '/teams/'],
    ['GET', '/keys/'],
    ['PATCH', '/keys/'],
    ['POST', '/keys/', '/rotate'],
    ['POST', '/keys/', '/revoke'],
    ['GET', '/providers/'],
    ['PATCH', '/providers/'],
    ['DELETE', '/providers/'],
    ['POST', '/providers/', '/test'],
    ['GET', '/requests/'],
  ])('in the path of %s %s… meet nobody', async (method, start, end = '') => {
    for (const word of WORDS) {
      const path = `${start}${encodeURIComponent(word.toWellFormed())}${end}`;
      const { status } = await call(postern, method, path, method === 'GET' ? undefined : {});
      expect([word, [400, 404].includes(status)]).toEqual([word, true]);
    }
  });

  it.each([
    ['/keys', 'team', { name: 'x' }],
    ['/keys', 'endpoints', { team: 'one', name: 'x' }],
    ['/keys', 'providers', { team: 'one', name: 'x' }],
    ['/keys', 'expires_at', { team: 'one', name: 'x' }],
    ['/providers', 'name', { url: 'http://127.0.0.1:9', secret: null }],
    ['/providers', 'url', { name: 'x', secret: null }],
    ['/providers', 'auth', { name: 'x', url: 'http://127.0.0.1:9', secret: null }],
    // Last: from then on there are teams that are called so.
    ['/teams', 'name', {}],
  ])('in a body sent to POST %s as %s are words, or rejected', async (path, field, rest) => {
    for (const word of WORDS) {
      const { status, body } = await call(postern, 'POST', path, { ...rest, [field]: word });
      if (path === '/teams' && status === 201) {
        const [row] = await postern.database.query<{ name: string }>('SELECT name FROM team WHERE id = $1', [
          body.id,
        ]);
        expect(row!.name).toBe(word);
      } else expect([word, [400, 404].includes(status)]).toEqual([word, true]);
    }
  });

  it('have changed nothing but the teams that are called so', async () => {
    await postern.database.query(`DELETE FROM audit_log WHERE subject_type = 'team' AND actor = 'admin-token'
      AND subject_name <> ALL ('{one,two}')`);
    await postern.database.query(`DELETE FROM team WHERE name <> ALL ('{one,two,default}')`);
    expect(await everything()).toEqual(before);
  });
});
