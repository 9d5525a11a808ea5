import { Logger } from '@nestjs/common';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { poll, signInSettings, startDevice, USERS } from './device-flow.js';
import { HeldLocks } from './held-locks.js';

const PERSON = '10000000-0000-0000-0000-000000000000';

let provider: RawProvider;
let issuer: OpenIdProvider;
let postern: TestGateway;
let locks: HeldLocks;
beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, USERS);
  postern = await startTestGateway({ PROVIDER_URL: provider.url, ...signInSettings(issuer, publicUrl) });
  await rows(`INSERT INTO person (id, issuer, subject, name) VALUES ('${PERSON}', 'x', 'x', 'x')`);
});
afterAll(async () => {
  await postern.stop();
  await issuer.stop();
  await provider.stop();
});
/** As many as may be pending, each of a network of its own: the first is the oldest. */
beforeEach(async () => {
  await rows('DELETE FROM device_request');
  await rows(`
    INSERT INTO device_request (id, device_digest, user_code_digest, surface, client_network, interval_s, expires_at)
    SELECT ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, sha256(n::text::bytea),
           sha256(('u' || n)::bytea), 'x', n::text, 5, now() + interval '9 minutes' + n * interval '1 ms'
    FROM generate_series(1, 10000) AS n ORDER BY random()`);
  locks = await HeldLocks.in(postern.database);
});
afterEach(() => locks.end());

const rows = (sql: string) => postern.database.query<Record<string, unknown>>(sql);
const isOne = (n: number) => `id = '00000000-0000-0000-0000-${String(n).padStart(12, '0')}'`;

/** Which of the first ten were deleted. */
async function dropped(all = 10_000): Promise<unknown[]> {
  const found = await rows(`
    SELECT n FROM generate_series(1, 10) AS n WHERE NOT EXISTS (
      SELECT FROM device_request WHERE id::text LIKE '%' || lpad(n::text, 12, '0')) ORDER BY n`);
  const [count] = await rows(`SELECT count(*)::int AS all FROM device_request`);
  expect(count).toEqual({ all });
  return found.map(({ n }) => n);
}

describe('while 10,000 sign-ins are pending', () => {
  it('a new one deletes the oldest that nobody has opened, and the log says so once', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn');
    await rows(`UPDATE device_request SET opened_at = now() WHERE ${isOne(1)}`);
    const first = await startDevice(postern);
    expect([first.status, await dropped()]).toEqual([200, [2]]);
    expect((await startDevice(postern)).status).toBe(200);
    expect(await dropped()).toEqual([2, 3]);
    expect(await poll(postern, first.body.device_code)).toMatchObject({ error: 'authorization_pending' });
    const lines = warn.mock.calls.map(([line]: unknown[]) => String(line));
    expect(lines.filter((line) => line.includes('are pending'))).toHaveLength(1);
  });

  it('a new one waits for no other that deletes the oldest', async () => {
    await locks.other.query('BEGIN');
    await locks.other.query(`SELECT FROM device_request WHERE ${isOne(1)} FOR UPDATE`);
    expect((await startDevice(postern)).status).toBe(200);
    expect(await dropped()).toEqual([2]);
  });

  it('of which a network has 100, a new one of it waits for no other that deletes the oldest of these', async () => {
    const address = { 'x-forwarded-for': '192.0.2.7' };
    await startDevice(postern, '', address);
    await rows(`
      DELETE FROM device_request WHERE id NOT IN (SELECT id FROM device_request ORDER BY expires_at LIMIT 99)
        AND client_network NOT IN (SELECT client_network FROM device_request ORDER BY id DESC LIMIT 1)`);
    await rows(`
      UPDATE device_request SET client_network = (SELECT client_network FROM device_request ORDER BY id DESC LIMIT 1)`);
    await locks.other.query('BEGIN');
    await locks.other.query(`SELECT FROM device_request WHERE ${isOne(2)} FOR UPDATE`);
    expect((await startDevice(postern, '', address)).status).toBe(200);
    expect(await dropped(100)).toEqual([1, 3]);
  });

  it('of which all are opened, a new one deletes the oldest that nobody has signed in with', async () => {
    await rows(`UPDATE device_request SET opened_at = now()`);
    await rows(`UPDATE device_request SET person_id = '${PERSON}' WHERE ${isOne(1)}`);
    expect((await startDevice(postern)).status).toBe(200);
    expect(await dropped()).toEqual([2]);
  });

  it('with all of which somebody has signed in, a new one is not accepted until one has ended', async () => {
    await rows(`UPDATE device_request SET opened_at = now(), person_id = '${PERSON}'`);
    const { status, body, headers } = await startDevice(postern);
    const error = expect.objectContaining({ error: 'temporarily_unavailable' }) as object;
    expect([status, body, headers.get('retry-after')]).toEqual([503, error, '30']);
    await rows(`UPDATE device_request SET expires_at = now() WHERE ${isOne(1)}`);
    expect((await startDevice(postern)).status).toBe(200);
  });
});
