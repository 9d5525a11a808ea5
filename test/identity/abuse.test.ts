import { KeyCache } from '../../src/auth/key-cache.js';
import { KeyLookupService } from '../../src/auth/key-lookup.service.js';
import { IssuerKeys } from '../../src/identity/trusts/issuer-keys.service.js';
import { TrustFailures } from '../../src/identity/trusts/trust-failures.service.js';
import { digestKey } from '../../src/keys/key-secret.js';
import { changesApplied } from '../support/changes-applied.js';
import { eventually, soon } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { exchange, type Exchanged, fromAnother, MANY_ADDRESSES, REJECTED, statusWith } from './exchanges.js';
import { FakeIssuer } from './fake-issuer.js';
import { HeldLocks } from './held-locks.js';

let issuer: FakeIssuer;
let stranger: FakeIssuer;
let gateway: TestGateway;
let replicas: TestGateway[];
beforeAll(async () => {
  issuer = await FakeIssuer.start();
  stranger = await FakeIssuer.start();
  const settings = { PROVIDER_URL: issuer.url, ...MANY_ADDRESSES };
  gateway = await startTestGateway(settings);
  const others = [1, 2].map(() => startTestGateway(settings, gateway.database));
  replicas = [gateway, ...(await Promise.all(others))];
  await gateway.admin('POST', '/keys', { team: 'default', name: 'ci', secret: false });
  await gateway.database.query(
    `INSERT INTO webhook (id, shown_url, events, format, sealed)
     VALUES (gen_random_uuid(), 'https://x', '{trust.failing,issuer.unavailable}', 'slack', '')`,
  );
});
/** Of a test, released also if it fails. */
let locks: HeldLocks | null = null;
afterEach(async () => {
  jest.restoreAllMocks();
  await locks?.end();
  locks = null;
});
afterAll(async () => {
  for (const replica of [...replicas].reverse()) await replica.stop();
  await issuer.stop();
  await stranger.stop();
});

async function createTrust(name: string, more: object = {}): Promise<void> {
  const body = { name, key: 'default/ci', issuer: issuer.url, audience: 'gateway', claims: { sub: ['job'] } };
  await gateway.admin('POST', '/trusts', { ...body, ...more });
}

const events = (type: string) =>
  gateway.database.query<{ data: Record<string, unknown> }>(
    'SELECT data FROM webhook_event WHERE type = $1',
    [type],
  );

it('a trust is known to every replica, and a token of one works on all until the trust is disabled', async () => {
  await createTrust('everywhere');
  for (const replica of replicas) {
    await eventually(async () => (await exchange(replica, 'everywhere', await issuer.sign())).status === 200);
    const { token } = await exchange(replica, 'everywhere', await issuer.sign());
    for (const other of replicas) expect(await statusWith(other, token!)).not.toBe(401);
  }
  const { token } = await exchange(gateway, 'everywhere', await issuer.sign());
  for (const other of replicas) expect(await statusWith(other, token!)).not.toBe(401);
  await gateway.admin('PATCH', '/trusts/everywhere', { enabled: false });
  await Promise.all(replicas.map((replica) => soon(async () => (await statusWith(replica, token!)) === 401)));
  // There is no other trust, so nothing is exchanged at all.
  for (const replica of replicas)
    await eventually(async () => (await exchange(replica, 'everywhere', await issuer.sign())).status === 404);
});

it('a trust has at most so many tokens at a time, not counting those that ended with a rotation or the end of its key', async () => {
  const key = await gateway.admin<{ id: string }>('POST', '/keys', { team: 'default', name: 'rotated' });
  await createTrust('few', { max_live: 2, key: key.id });
  const statuses: number[] = [];
  let last = await exchange(gateway, 'few', await issuer.sign());
  for (let i = 0; i < 3; i++) {
    statuses.push(last.status);
    last = await exchange(gateway, 'few', await issuer.sign());
  }
  expect(statuses).toEqual([200, 200, 429]);
  expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(3_000);
  await gateway.admin('POST', `/keys/${key.id}/rotate`);
  const after: number[] = [];
  for (let i = 0; i < 3; i++) after.push((await exchange(gateway, 'few', await issuer.sign())).status);
  expect(after).toEqual([200, 200, 429]);
  const next = await gateway.admin<{ id: string }>('POST', '/keys', { team: 'default', name: 'next' });
  await gateway.admin('PATCH', '/trusts/few', { key: next.id });
  // Those of the former key work on, and count, until it ends.
  expect((await exchange(gateway, 'few', await issuer.sign())).status).toBe(429);
  await gateway.admin('POST', `/keys/${key.id}/revoke`);
  expect((await exchange(gateway, 'few', await issuer.sign())).status).toBe(200);
});

it('of a flood of forged tokens, a network has 50 a second verified; others cost neither a signature nor a statement', async () => {
  await createTrust('flooded');
  const [valid, forged] = [await issuer.sign(), await issuer.sign({}, { key: stranger.privateKey })];
  expect((await exchange(gateway, 'flooded', valid)).status).toBe(200);
  const keys = [gateway.key, await gateway.createKey(), await gateway.createKey()];
  await changesApplied(gateway);
  const callAll = () => Promise.all(keys.map((key) => statusWith(gateway, key)));
  expect(await callAll()).toEqual([200, 200, 200]);
  const cache = gateway.gateway.app.get(KeyCache);
  const lookup = gateway.gateway.app.get(KeyLookupService);
  const grants = keys.map((key) => cache.get(digestKey(key))!.grant);
  const { misses } = lookup.counts;

  // Statements of exchanges and of look-ups of keys name this table. They wait until it is unlocked.
  locks = await HeldLocks.in(gateway.database);
  await locks.other.query('BEGIN');
  await locks.other.query('LOCK TABLE trust IN ACCESS EXCLUSIVE MODE');
  const verify = jest.spyOn(crypto.subtle, 'verify');
  const rejections: Exchanged[] = [];
  // Of another network, which the flood does not keep from the bound of its own.
  const another = { 'x-forwarded-for': '2001:db8:0:2::1' };
  let [verified, rounds, others] = [0, 0, 0];
  const began = performance.now();
  // However long it takes: the bound grows with the time, and the flood goes on until enough is beyond it.
  while (rejections.length < 1_000) {
    const sent = Array.from({ length: 200 }, () => {
      const address = `2001:db8:0:1::${(others++).toString(16)}`;
      return exchange(gateway, 'flooded', forged, {}, { 'x-forwarded-for': address });
    });
    const other = exchange(gateway, 'flooded', forged, {}, another);
    const [answers, called, { status }] = await Promise.all([Promise.all(sent), callAll(), other]);
    expect([...called, status]).toEqual([200, 200, 200, 400]);
    rounds++;
    for (const answer of answers)
      if (answer.status === 429) rejections.push(answer);
      else {
        expect([answer.status, answer.text]).toEqual([400, REJECTED]);
        verified++;
      }
    expect(verified).toBeLessThanOrEqual(50 * (Math.floor((performance.now() - began) / 1_000) + 2));
  }
  expect(verified).toBeGreaterThan(0);
  expect(verify).toHaveBeenCalledTimes(verified + rounds);
  for (const { headers, text } of rejections) {
    expect(headers.get('retry-after')).toBe('1');
    expect(JSON.parse(text)).toMatchObject({ error: 'temporarily_unavailable' });
  }
  expect(lookup.counts.misses).toBe(misses);
  keys.forEach((key, i) => expect(cache.get(digestKey(key))!.grant).toBe(grants[i]));

  // A good token waits for the table: it is locked indeed.
  const waiting = exchange(gateway, 'flooded', valid, {}, another);
  await eventually(() => verify.mock.calls.length > verified + rounds);
  await eventually(async () => {
    const issuing = await gateway.database.query(
      `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%max_live%' AND datname = current_database()`,
    );
    return issuing.length > 0;
  });
  await locks.other.query('COMMIT');
  expect((await waiting).status).toBe(200);
  const { live_tokens: live } = await gateway.admin<{ live_tokens: number }>('GET', '/trusts/flooded');
  expect(live).toBe(2);
});

it('ten refusals of tokens that the issuer signed are one alert, and forged ones are none', async () => {
  await createTrust('failing');
  const refuse = async (token: string) => {
    for (let i = 0; i < 12; i++)
      expect((await exchange(replicas[1]!, 'failing', token, {}, fromAnother())).status).toBe(400);
    await replicas[1]!.gateway.app.get(TrustFailures).write();
  };
  await eventually(async () => (await exchange(replicas[1]!, 'failing', await issuer.sign())).status === 200);
  await refuse(await issuer.sign({ sub: 'another' }, { key: stranger.privateKey }));
  expect(await events('trust.failing')).toEqual([]);
  expect(await gateway.admin('GET', '/trusts/failing/failures')).toEqual({ data: [] });
  await refuse(await issuer.sign({ sub: 'another' }));
  expect(await events('trust.failing')).toMatchObject([
    { data: { trust: 'failing', minutes: 10, reason: 'the claim sub does not have an accepted value' } },
  ]);
  // Not again within the hour.
  await refuse(await issuer.sign({ sub: 'another' }));
  const [repeated] = await gateway.database.query<{ count: number; hours: number }>(
    `SELECT count(*)::int, count(DISTINCT date_trunc('hour', created_at))::int AS hours
     FROM webhook_event WHERE type = 'trust.failing'`,
  );
  expect(repeated!.count).toBe(repeated!.hours);
  // As if that had been an hour ago.
  await gateway.database.query(
    `UPDATE webhook_event SET once = replace(once, hour::text, (hour - 3600)::text)
     FROM (SELECT id AS event, extract(epoch FROM date_trunc('hour', created_at)) AS hour FROM webhook_event) e
     WHERE id = event AND type = 'trust.failing'`,
  );
  await refuse(await issuer.sign({ sub: 'another' }));
  expect((await events('trust.failing')).length).toBeGreaterThan(repeated!.count);
});

it('of each trust, the last fifty failures are stored', async () => {
  await createTrust('often', { claims: { sub: ['job'], n: [0] } });
  await createTrust('seldom', { claims: { sub: ['job'], n: [0] } });
  const failures = gateway.gateway.app.get(TrustFailures);
  const fail = async (trust: string, from: number, count: number) => {
    for (let n = from; n < from + count; n++)
      expect((await exchange(gateway, trust, await issuer.sign({ n }), {}, fromAnother())).status).toBe(400);
    await failures.write();
  };
  await fail('seldom', 1, 3);
  await fail('often', 1, 30);
  await fail('often', 31, 30);
  // A batch has no more either.
  await fail('often', 61, 60);
  const stored = await gateway.database.query(
    `SELECT tr.name, count(*)::int, min((f.claims->>'n')::int) AS oldest, max((f.claims->>'n')::int) AS newest
     FROM trust_failure f JOIN trust tr ON tr.id = f.trust_id WHERE tr.name IN ('often', 'seldom')
     GROUP BY tr.name ORDER BY tr.name`,
  );
  expect(stored).toEqual([
    { name: 'often', count: 50, oldest: 71, newest: 120 },
    { name: 'seldom', count: 3, oldest: 1, newest: 3 },
  ]);
});

it('an issuer whose keys cannot be read for ten minutes is an alert, and two readings for made-up keys are none', async () => {
  const broken = await FakeIssuer.start();
  broken.instead = (_req, res) => res.writeHead(500).end();
  await createTrust('broken', { issuer: broken.url });
  await eventually(async () => (await exchange(gateway, 'broken', await broken.sign())).status === 503);
  const now = performance.now.bind(performance);
  let ahead = 31_000;
  jest.spyOn(performance, 'now').mockImplementation(() => now() + ahead);
  const asked = broken.asked.length;
  const madeUp = await broken.sign({}, { header: { kid: 'made up' } });
  expect((await exchange(gateway, 'broken', madeUp)).status).toBe(503);
  expect(broken.asked.length).toBeGreaterThan(asked);
  expect(await events('issuer.unavailable')).toEqual([]);
  ahead += 600_000;
  await gateway.gateway.app.get(IssuerKeys).refresh();
  expect(await events('issuer.unavailable')).toMatchObject([{ data: { issuer: broken.url } }]);
  await broken.stop();
});
