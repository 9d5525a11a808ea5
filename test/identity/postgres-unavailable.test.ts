import { changesApplied } from '../support/changes-applied.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { PostgresRelay } from '../support/postgres-relay.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { setPatience } from '../support/patience.js';
import { exchange, type Exchanged, exchanged, statusWith } from './exchanges.js';
import { FakeIssuer } from './fake-issuer.js';

setPatience(1);

let provider: RawProvider;
let issuer: FakeIssuer;
let database: TestDatabase;
let relay: PostgresRelay;
let gateway: TestGateway;
beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], 'ok'));
  });
  issuer = await FakeIssuer.start();
  database = await createDatabase();
  relay = await PostgresRelay.to(database.url);
  gateway = await startTestGateway({ DATABASE_URL: relay.url, PROVIDER_URL: provider.url }, database);
  await gateway.admin('POST', '/keys', { team: 'default', name: 'ci', secret: false });
  const trust = {
    name: 'job',
    key: 'default/ci',
    issuer: issuer.url,
    audience: 'gateway',
    claims: { sub: ['job'] },
  };
  await gateway.admin('POST', '/trusts', trust);
  await changesApplied(gateway);
});
afterAll(async () => {
  await gateway.stop();
  await relay.close();
  await database.drop();
  await issuer.stop();
  await provider.stop();
});

/** As Anthropic's SDKs do. */
async function exchangeAsAnthropic(assertion: string): Promise<Exchanged> {
  const grant = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
  const response = await fetch(`${gateway.url}/v1/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ grant_type: grant, federation_rule_id: 'job', assertion }),
  });
  return exchanged(response);
}

/** How many exchanges the metric counts as such. */
async function unavailable(): Promise<number> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const text = await (await fetch(`${gateway.url}/metrics`, { headers })).text();
  const line = /^postern_tokens_issued_total\{grant="exchange",result="unavailable"\} (\d+)$/m.exec(text);
  return Number(line?.[1] ?? 0);
}

it.each(['cut', 'frozen'] as const)(
  'no token is issued while Postgres is unavailable (%s), those that are known work, and then it goes on',
  async (trouble) => {
    const { token } = await exchange(gateway, 'job', await issuer.sign());
    expect(await statusWith(gateway, token!)).toBe(200);
    const before = await unavailable();
    relay.set('*', trouble);
    const identity = await issuer.sign();
    const responses = await Promise.all([exchange(gateway, 'job', identity), exchangeAsAnthropic(identity)]);
    for (const { status, headers, text } of responses) {
      expect([status, headers.get('retry-after')]).toEqual([503, '5']);
      expect(JSON.parse(text)).toMatchObject({ error: 'temporarily_unavailable' });
    }
    expect(await unavailable()).toBe(before + 2);
    expect(await statusWith(gateway, token!)).toBe(200);
    relay.set('*', 'cut');
    relay.set('*', 'none');
    await eventually(async () => (await exchange(gateway, 'job', await issuer.sign())).status === 200);
  },
);
