import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { PGBOUNCER, type Pooler, startPooler } from '../support/pooler.js';
import type { RawProvider } from '../support/raw-provider.js';
import { sendTo, setPrice, startUsageProvider } from '../limits/limited-gateway.js';

/* Two gateways behind PgBouncer in transaction mode, with its default settings. */

if (PGBOUNCER === null) {
  it('pgbouncer is not installed: nothing was tried behind a pooler', () => {
    process.stdout.write('NOT TRIED: pgbouncer is not installed\n');
  });
} else {
  const CHAT = { model: 'm', max_tokens: 100, messages: [] };
  let database: TestDatabase;
  let pooler: Pooler;
  let provider: RawProvider;
  let gateways: [TestGateway, TestGateway];

  beforeAll(async () => {
    database = await createDatabase();
    const name = new URL(database.url).pathname.slice(1);
    // The test's server has it off.
    await database.query(`ALTER DATABASE "${name}" SET synchronous_commit = on`);
    pooler = await startPooler(database.url, 'transaction');
    provider = await startUsageProvider({ input: 100, output: 100 });
    const variables = {
      DATABASE_URL: pooler.url,
      DATABASE_DIRECT_URL: database.url,
      PROVIDER_URL: provider.url,
      // Replicas must decrypt what each other have stored.
      MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    };
    gateways = [await startTestGateway(variables, database), await startTestGateway(variables, database)];
    await setPrice(gateways[0]);
  });
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop();
    await provider.stop();
    await pooler.stop();
    await database.drop();
  });

  it.each(['without DATABASE_DIRECT_URL', 'with DATABASE_DIRECT_URL'])(
    'the start is refused if the pooler is where sessions are needed, %s',
    async (how) => {
      const isDirect = how.startsWith('with ');
      await expect(
        startTestGateway(
          { DATABASE_URL: pooler.url, ...(isDirect && { DATABASE_DIRECT_URL: pooler.url }) },
          database,
        ),
      ).rejects.toThrow(
        `Notifications of Postgres do not arrive through ${isDirect ? 'DATABASE_DIRECT_URL' : 'DATABASE_URL'}, ` +
          'as behind a pooler in transaction mode. Set DATABASE_DIRECT_URL to a connection without such a pooler.',
      );
    },
  );

  it('the start is refused if a commit through the pooler would not survive a crash', async () => {
    const other = await createDatabase();
    const name = new URL(other.url).pathname.slice(1);
    await other.query(`ALTER DATABASE "${name}" SET synchronous_commit = off`);
    const poolerOfOther = await startPooler(other.url, 'transaction');
    try {
      await expect(
        startTestGateway({ DATABASE_URL: poolerOfOther.url, DATABASE_DIRECT_URL: other.url }, other),
      ).rejects.toThrow(/synchronous_commit = off.*ALTER ROLE … SET synchronous_commit = on/);
    } finally {
      await poolerOfOther.stop();
      await other.drop();
    }
  });

  const send = (at: 0 | 1, key: string, headers?: Record<string, string>) =>
    sendTo(gateways[at].url, key, CHAT, undefined, headers);

  it('calls with a budget, a rate and a cache, and their rows, are as without a pooler', async () => {
    const limited = await gateways[0].createKey({
      budgets: [{ usd: '5', period: 'month' }],
      limits: { requests_per_minute: 10_000 },
    });
    const cached = await gateways[0].createKey({ cache: { ttl_seconds: 3_600 } });
    const calls = Array.from({ length: 60 }, (_, i) => send((i % 2) as 0 | 1, i % 3 ? limited : cached));
    const replies = await Promise.all(calls);
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    await eventually(async () => (await gateways[0].rowCount()) >= 60);
    // What was stored at one gateway is found at the other.
    await eventually(async () => (await send(1, cached)).headers.get('x-gateway-cache') === 'hit');
  });

  it('an Idempotency-Key runs once, whichever gateway gets the second request', async () => {
    const before = provider.requests.length;
    const key = await gateways[0].createKey({ idempotency: 'replay' });
    const ids = Array.from({ length: 20 }, (_, i) => `pooled-${i}`);
    await Promise.all(ids.map((id) => send(0, key, { 'idempotency-key': id })));
    // A response is stored after its client has it.
    for (const id of ids)
      await eventually(async () => (await send(1, key, { 'idempotency-key': id })).status === 200);
    expect(provider.requests.length - before).toBe(20);
  });

  it('a revocation arrives at once, although the pooler delivers no notification', async () => {
    const { id, key } = await gateways[0].admin<{ id: string; key: string }>('POST', '/keys', {
      team: 'default',
      name: 'pooled',
    });
    expect((await send(1, key)).status).toBe(200);
    await gateways[0].admin('POST', `/keys/${id}/revoke`);
    await eventually(async () => (await send(1, key)).status === 401);
  });

  it('a pooler that was killed and started again costs known keys nothing', async () => {
    const key = await gateways[0].createKey({ idempotency: 'replay' });
    expect((await send(0, key)).status).toBe(200);
    await pooler.kill();
    expect((await send(0, key)).status).toBe(200);
    await pooler.start();
    await eventually(async () => (await send(0, key, { 'idempotency-key': 'after' })).status === 200);
  });
}
