import { OpenIdProvider } from '../admin/openid-provider.js';
import { soon } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { signedIn, signInSettings, USERS } from './device-flow.js';
import { statusWith } from './exchanges.js';

interface Person {
  id: string;
  keys: { name: string }[];
  ended: { keys: number };
}

let provider: RawProvider;
let issuer: OpenIdProvider;
let postern: TestGateway;
beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, USERS);
  postern = await startTestGateway({ PROVIDER_URL: provider.url, ...signInSettings(issuer, publicUrl) });
  await postern.admin('PATCH', '/teams/default', { sign_in: {} });
});
afterAll(async () => {
  await postern.stop();
  await issuer.stop();
  await provider.stop();
});

/** A key of this owner. Those of an earlier version have no ID of the owner. @returns its secret */
async function keyOf(name: string, owner: string, ownerId: string | null = null): Promise<string> {
  const body = { team: 'default', name };
  const { id, key } = await postern.admin<{ id: string; key: string }>('POST', '/keys', body);
  await postern.database.query('UPDATE gateway_key SET owner = $2, owner_id = $3 WHERE id = $1', [
    ...[id, owner, ownerId],
  ]);
  return key;
}

/** The ID of a person, who has signed in. */
async function personOf(subject: string): Promise<string> {
  await signedIn(postern, issuer, subject);
  const [row] = await postern.database.query<{ id: string }>('SELECT id FROM person WHERE subject = $1', [
    subject,
  ]);
  return row!.id;
}

it('own keys that an earlier version created, known by the name of their owner, end with the person', async () => {
  const [jane, unverified] = [await personOf('jane'), await personOf('unverified')];
  const byAddress = await keyOf('by address', 'sso:jane@example.com');
  const bySubject = await keyOf('by subject', 'sso:unverified');
  const others = [
    await keyOf('of the heir', 'sso:jane@example.com', `sso:${issuer.url}#heir`),
    await keyOf('of another', 'sso:mia@example.com'),
    await keyOf('of nobody', 'jane@example.com'),
  ];
  for (const key of [byAddress, bySubject, ...others]) expect(await statusWith(postern, key)).toBe(200);

  for (const [id, name, key] of [
    [jane, 'default/by address', byAddress],
    [unverified, 'default/by subject', bySubject],
  ] as const) {
    const { keys } = await postern.admin<Person>('GET', `/people/${id}`);
    expect(keys.map((one) => one.name)).toContain(name);
    const { ended } = await postern.admin<Person>('POST', `/people/${id}/end`, {});
    expect(ended.keys).toBe(1);
    await soon(async () => (await statusWith(postern, key)) === 401);
  }
  for (const key of others) expect(await statusWith(postern, key)).toBe(200);
});
