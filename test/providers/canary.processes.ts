import { randomBytes } from 'node:crypto';
import { filesHolding } from '../support/files-below.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import type { RawProvider } from '../support/raw-provider.js';
import { answer } from '../support/raw-provider.js';
import { Workplace } from '../support/workplace.js';
import { namedProvider } from './stored.js';

const SECRET = 'sk-canary-0a1b2c3d4e5f';
const MASTER_KEY = randomBytes(32);
let workplace: Workplace;
let database: TestDatabase;
let provider: RawProvider;

beforeAll(async () => {
  workplace = await Workplace.make();
  database = await createDatabase();
  provider = await namedProvider('it');
});
afterAll(async () => {
  await workplace.remove();
  await provider.stop();
  await database.drop();
});

/** Every row of every table as text: what a dump would hold. */
async function dump(): Promise<string> {
  const tables = await database.query<{ name: string }>(
    "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = 'public'",
  );
  expect(tables.map(({ name }) => name)).toContain('public.provider');
  const rows: string[] = [];
  for (const { name } of tables) {
    rows.push(
      ...(await database.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`)).map(
        ({ row }) => row,
      ),
    );
  }
  return rows.join('\n');
}

it('keeps the secret of a provider out of everything but the calls to it', async () => {
  const gateway = workplace.gateway({
    DATABASE_URL: database.url,
    MASTER_KEY: MASTER_KEY.toString('base64'),
    ADMIN_TOKEN,
    LOG_LEVEL: 'trace',
  });
  const url = await gateway.ready();
  const key = await gateway.firstKey();
  const answers: string[] = [];
  const call = async (
    method: string,
    path: string,
    body?: object,
    bearer = ADMIN_TOKEN,
    headers: Record<string, string> = {},
  ) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    answers.push(JSON.stringify([...response.headers]), await response.text());
    return response.status;
  };
  const providers = '/admin/v1/providers';
  expect(
    await call('POST', providers, { name: 'it', url: provider.url, secret: SECRET, default: true }),
  ).toBe(201);
  // Orders that fail in every way, with the secret in them.
  expect(await call('POST', providers, { name: 'it', url: provider.url, secret: SECRET })).toBe(409);
  expect(await call('POST', providers, { name: SECRET.toUpperCase(), url: SECRET, secret: SECRET })).toBe(
    400,
  );
  expect(await call('POST', providers, { name: 'x', url: `https://${SECRET}@a.example`, secret: null })).toBe(
    400,
  );
  expect(await call('PATCH', `${providers}/it`, { secret: ` ${SECRET}`, key: SECRET })).toBe(400);
  await database.query('ALTER TABLE change_counter RENAME TO gone');
  expect(await call('POST', providers, { name: 'y', url: provider.url, secret: SECRET })).toBe(500);
  await database.query('ALTER TABLE gone RENAME TO change_counter');
  expect(await call('PATCH', `${providers}/it`, { secret: SECRET, enabled: true })).toBe(200);
  expect(await call('GET', providers)).toBe(200);
  expect(await call('POST', `${providers}/it/test`)).toBe(200);
  expect(await call('GET', '/v1/models', undefined, key)).toBe(200);
  // The same text as the credential of a caller: forwarded, rejected, and in every header that has a column.
  const own = { name: 'own', url: provider.url, auth: 'client', secret: null };
  expect(await call('POST', providers, own)).toBe(201);
  const texts = Object.fromEntries(
    ['user-agent', 'idempotency-key', 'x-gateway-user', 'x-gateway-session', 'traceparent', 'tracestate'].map(
      (name) => [name, `x${SECRET}`],
    ),
  );
  const client = { 'x-gateway-key': key, 'x-gateway-tags': `a=${SECRET}`, ...texts };
  expect(await call('POST', '/p/own/v1/messages', { model: SECRET }, SECRET, client)).toBe(200);
  expect(await call('GET', '/p/own/v1/files', undefined, SECRET, client)).toBe(403);
  expect(await call('POST', '/p/own/v1/messages', {}, SECRET)).toBe(401);
  expect(await call('POST', '/p/own/v1/messages', {}, SECRET, { 'x-gateway-key': 'ptn_' })).toBe(401);
  provider.script = async (req) => {
    await req.body;
    req.socket.write(answer('401 Unauthorized', [`x-echo: ${SECRET}`], 'wrong'));
  };
  expect(await call('POST', '/v1/chat/completions', {}, key)).toBe(401);
  expect(await call('POST', `${providers}/it/test`)).toBe(200);
  await provider.stop();
  expect(await call('POST', '/v1/chat/completions', {}, key)).toBe(502);
  expect(await call('POST', '/p/own/v1/messages', {}, SECRET, client)).toBe(502);
  expect(await call('POST', `${providers}/it/test`)).toBe(200);
  expect(await call('GET', '/metrics')).not.toBe(500);
  await gateway.stop();

  expect(provider.requests.map(({ head }) => head.includes(SECRET))).toEqual(Array(5).fill(true));
  const forms = [
    SECRET,
    Buffer.from(SECRET).toString('hex'),
    Buffer.from(SECRET).toString('base64').slice(0, -4),
  ];
  forms.push(MASTER_KEY.toString('base64'), MASTER_KEY.toString('hex'));
  const places = {
    answers: answers.join('\n'),
    stdout: gateway.process.stdout,
    stderr: gateway.process.stderr,
    database: await dump(),
  };
  for (const [place, text] of Object.entries(places)) {
    expect([place, forms.filter((form) => text.toLowerCase().includes(form.toLowerCase()))]).toEqual([
      place,
      [],
    ]);
  }
  expect(await filesHolding(workplace.folder, forms)).toEqual([]);
});
