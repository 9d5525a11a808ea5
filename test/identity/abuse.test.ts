import { TrustFailures } from '../../src/identity/trusts/trust-failures.service.js';
import { eventually, soon } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { exchange, statusWith } from './exchanges.js';
import { FakeIssuer } from './fake-issuer.js';

let issuer: FakeIssuer;
let stranger: FakeIssuer;
let gateway: TestGateway;
let replicas: TestGateway[];
beforeAll(async () => {
  issuer = await FakeIssuer.start();
  stranger = await FakeIssuer.start();
  const settings = { PROVIDER_URL: issuer.url };
  gateway = await startTestGateway(settings);
  const others = [1, 2].map(() => startTestGateway(settings, gateway.database));
  replicas = [gateway, ...(await Promise.all(others))];
  await gateway.admin('POST', '/keys', { team: 'default', name: 'ci', secret: false });
  await gateway.database.query(
    `INSERT INTO webhook (id, shown_url, events, format, sealed)
     VALUES (gen_random_uuid(), 'https://x', '{trust.failing,issuer.unavailable}', 'slack', '')`,
  );
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

it('a trust has at most so many tokens at a time', async () => {
  await createTrust('few', { max_live: 2 });
  const statuses: number[] = [];
  let last = await exchange(gateway, 'few', await issuer.sign());
  for (let i = 0; i < 3; i++) {
    statuses.push(last.status);
    last = await exchange(gateway, 'few', await issuer.sign());
  }
  expect(statuses).toEqual([200, 200, 429]);
  expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(3_000);
});

it('one address cannot have more tokens verified than the bound', async () => {
  await createTrust('flooded');
  const forged = await issuer.sign({}, { key: stranger.privateKey });
  const statuses = new Set<number>();
  await eventually(async () => {
    const answers = await Promise.all(
      Array.from({ length: 200 }, () => exchange(gateway, 'flooded', forged)),
    );
    for (const { status } of answers) statuses.add(status);
    return statuses.has(429);
  });
  expect([...statuses].filter((status) => status !== 400 && status !== 429)).toEqual([]);
});

it('ten refusals of tokens that the issuer signed are one alert, and forged ones are none', async () => {
  await createTrust('failing');
  const wrong = await issuer.sign({ sub: 'another' });
  let refused = 0;
  await eventually(async () => {
    if ((await exchange(replicas[1]!, 'failing', wrong)).status === 400) refused++;
    return refused === 12;
  });
  await replicas[1]!.gateway.app.get(TrustFailures).write();
  await eventually(async () => (await events('trust.failing')).length > 0);
  expect(await events('trust.failing')).toMatchObject([
    { data: { trust: 'failing', minutes: 10, reason: 'the claim sub does not have an accepted value' } },
  ]);
});

it('an issuer whose keys cannot be read is an alert', async () => {
  const broken = await FakeIssuer.start();
  broken.instead = (_req, res) => res.writeHead(500).end();
  await createTrust('broken', { issuer: broken.url });
  await eventually(async () => (await exchange(gateway, 'broken', await broken.sign())).status === 503);
  await eventually(async () => (await events('issuer.unavailable')).length > 0);
  expect(await events('issuer.unavailable')).toMatchObject([{ data: { issuer: broken.url } }]);
  await broken.stop();
});
