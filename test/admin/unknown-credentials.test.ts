import type pg from 'pg';
import { DataSource } from 'typeorm';
import { generateToken } from '../../src/admin/access/token-format.js';
import { ReaderPool } from '../../src/requests/reader-pool.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway } from '../support/gateway.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start({ TRUSTED_PROXIES: '127.0.0.0/8' });
});
afterAll(() => wire.stop());
afterEach(() => jest.restoreAllMocks());

const ask = (token: string, address: string) =>
  fetch(`${wire.gateway.url}/admin/v1/teams`, {
    headers: { 'x-forwarded-for': address, authorization: `Bearer ${token}` },
  });
const askSession = (cookie: string, address: string, url = wire.gateway.url) =>
  fetch(`${url}/admin/v1/session`, {
    headers: { 'x-forwarded-for': address, cookie: `__Host-postern=${cookie}` },
  });

/** Sends 150 requests at once until some are more than are looked up. */
async function flood(send: () => Promise<Response>): Promise<Response[]> {
  return eventually(async () => {
    const all = await Promise.all(Array.from({ length: 150 }, send));
    return all.some(({ status }) => status === 429) && all;
  });
}

const statusesOf = (responses: readonly Response[]) =>
  [...new Set(responses.map(({ status }) => status))].sort();

it('looks up only some unknown tokens of an address in a second, and a token in use all the same', async () => {
  const { token } = await wire.gateway.admin<{ token: string }>('POST', '/tokens', {
    name: 'in use',
    role: 'viewer',
  });
  expect((await ask(token, '198.51.100.1')).status).toBe(200);
  const responses = await flood(() => ask(generateToken(), '198.51.100.1'));
  expect((await ask(token, '198.51.100.1')).status).toBe(200);
  expect((await ask(generateToken(), '198.51.100.2')).status).toBe(401);
  expect(statusesOf(responses)).toEqual([401, 429]);
  const rejected = responses.find(({ status }) => status === 429)!;
  expect(rejected.headers.get('retry-after')).toBe('1');
  expect(await rejected.json()).toEqual({
    error: {
      code: 'rate_limited',
      message: 'Too many unknown tokens or sessions came from this address. Try again in a second.',
      details: [],
    },
  });
});

it('looks up only some unknown sessions of an address in a second', async () => {
  const responses = await flood(() => askSession(generateToken().slice(4).padEnd(43, 'A'), '198.51.100.3'));
  expect(statusesOf(responses)).toEqual([200, 429]);
});

it('lets whoever signs in go on beside a flood from the same address, also on another replica', async () => {
  const address = '198.51.100.5';
  const signIn = await fetch(`${wire.gateway.url}/admin/v1/session`, {
    method: 'POST',
    headers: { 'x-forwarded-for': address, 'content-type': 'application/json' },
    body: JSON.stringify({ token: ADMIN_TOKEN }),
  });
  const [, cookie] = /^__Host-postern=([^;]+)/.exec(signIn.headers.get('set-cookie')!)!;
  const replica = await startTestGateway({ TRUSTED_PROXIES: '127.0.0.0/8' }, wire.gateway.database);
  for (const url of [wire.gateway.url, replica.url]) {
    const made = () => askSession(generateToken().slice(4).padEnd(43, 'A'), address, url);
    const responses = await flood(made);
    const session = await askSession(cookie!, address, url);
    expect(statusesOf(responses)).toContain(429);
    expect([session.status, await session.json()]).toMatchObject([200, { session: { role: 'admin' } }]);
  }
  await replica.stop();
});

it('asks Postgres once for an unknown token that comes again', async () => {
  const query = jest.spyOn(wire.gateway.gateway.app.get(DataSource), 'query');
  const count = () => query.mock.calls.filter(([text]) => text.includes('FROM admin_token')).length;
  await eventually(async () => {
    const token = generateToken();
    await ask(token, '198.51.100.4');
    const before = count();
    expect(before).toBeGreaterThan(0);
    expect((await ask(token, '198.51.100.4')).status).toBe(401);
    return count() === before;
  });
});

it('uses other connections than the look-ups of gateway keys', async () => {
  const key = await wire.gateway.createKey({ endpoints: 'all' });
  const { driver } = wire.gateway.gateway.app.get(DataSource);
  const { master } = driver as unknown as { master: pg.Pool };
  const all = await Promise.all(Array.from({ length: master.options.max }, () => master.connect()));
  const reply = await fetch(`${wire.gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  for (const client of all) client.release();
  expect(reply.status).toBe(200);
});

it('reads the log for administrators and viewers over other connections than for members', async () => {
  const team = await wire.gateway.admin<{ id: string }>('POST', '/teams', { name: 'members' });
  const asked = { name: 'member', role: 'team', teams: ['members'] };
  const { token } = await wire.gateway.admin<{ token: string }>('POST', '/tokens', asked);
  const pool = wire.gateway.gateway.app.get(ReaderPool).of([team.id]);
  const read = async (path: string, by: string, signal?: AbortSignal) =>
    (
      await fetch(`${wire.gateway.url}/admin/v1${path}`, {
        headers: { authorization: `Bearer ${by}` },
        signal,
      }).catch(() => ({ status: 'waits' }))
    ).status;
  const all = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
  const paths = ['/requests', '/usage?group_by=model'];
  for (const path of paths)
    expect([await read(path, ADMIN_TOKEN), await read(path, token, AbortSignal.timeout(1_000))]).toEqual([
      200,
      'waits',
    ]);
  for (const client of all) client.release();
  for (const path of paths) expect(await read(path, token)).toBe(200);
});
