import { DeviceIdpSecrets, SignInIdpSecrets } from '../../src/identity/sign-in/idp-secrets.service.js';
import { commandUser } from '../../src/platform/actor.js';
import { ProviderSecrets } from '../../src/providers/provider-secrets.service.js';
import { ResealService } from '../../src/providers/reseal.service.js';
import { SinkSecrets } from '../../src/sinks/sink-secrets.service.js';
import { WebhookSecrets } from '../../src/webhooks/webhook-secrets.service.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

const KEY = Buffer.alloc(32, 'k').toString('base64');
const NEXT_KEY = Buffer.alloc(32, 'n').toString('base64');
const ids = [7, 8, 9].map((n) => `01890a5d-ac96-774b-bcce-b302099a805${n}`);
const [PROVIDER, WEBHOOK, SINK] = ids as [string, string, string];

/** Sealed with KEY for these rows by an earlier version: what is stored opens in every later one. */
const SEALED = {
  provider: 'AeOEVrFuOz1X7SYqLCjyDRpc0bq3XvOFnnGLWK6OmbK7jykwSBg+mhIlwdG+MXI=',
  webhook:
    'AeOEVrFm74cl8+5zyw83Fj0Dom45rj42IcjpJy9n458WzzapJH5C9fTjea+qnBXXSCthALZ8AAFs+AuoE6/mGUbemNWNGKiQGqFoeSz3aWtWKG+F9TILMRcAhadjWYNG/Ub7LZb/o31Ia8zlm+UeIGxQAnfIx1noI2MpTy4Ft6gF8Sl2aECDqUQV5NQ=',
  sink: 'AeOEVrFwQDTj+F4dEaBKJZiraQoM+Oq4nGhrj1fBAzAaOt0yuLlfe6Cy48ZaQTdZ4SHULP5kb1APxT0vejqU4R2pUxlroRtBhvXK5wz6431Dul2hsdRcwCu/dGv3jEz4',
};
const OPENED = {
  provider: 'sk-of-provider',
  webhook: {
    url: 'https://hooks.example.com/T0/secret',
    secret: `whsec_${Buffer.alloc(32, 'w').toString('base64')}`,
  },
  sink: { url: 'https://sink.example.com/rows', secret: 'Bearer token' },
};
const NAMES = ['hidden', `webhook ${WEBHOOK}`, 'sink warehouse'];

let database: TestDatabase;

beforeAll(async () => {
  database = await createDatabase();
  const sealed = (table: keyof typeof SEALED) => Buffer.from(SEALED[table], 'base64');
  await database.query(
    `INSERT INTO provider (id, name, url, auth, sealed_secret, is_default, enabled)
     VALUES ($1, 'hidden', 'https://hidden.example.com', 'bearer', $2, false, true)`,
    [PROVIDER, sealed('provider')],
  );
  await database.query(
    `INSERT INTO webhook (id, shown_url, events, format, sealed)
     VALUES ($1, 'https://hooks.example.com', '{key.expiring}', 'standard', $2)`,
    [WEBHOOK, sealed('webhook')],
  );
  await database.query(
    `INSERT INTO sink (id, name, kind, shown_url, sealed, enabled, recorded_until, recorded_until_id)
     VALUES ($1, 'warehouse', 'http', 'https://sink.example.com', $2, false, now(), $1)`,
    [SINK, sealed('sink')],
  );
});
afterAll(() => database.drop());

async function withGateway(
  variables: Record<string, string>,
  use: (gateway: TestGateway) => Promise<void>,
): Promise<void> {
  const gateway = await startTestGateway(variables, database);
  try {
    await use(gateway);
  } finally {
    await gateway.stop();
  }
}

const reseal = ({ gateway }: TestGateway) => gateway.app.get(ResealService).reseal(commandUser());

async function opened({ gateway: { app } }: TestGateway): Promise<object> {
  const rows = await database.query<{ sealed: Buffer }>(
    `SELECT sealed_secret AS sealed FROM provider UNION ALL SELECT sealed FROM webhook UNION ALL SELECT sealed FROM sink`,
  );
  const [provider, webhook, sink] = rows.map(({ sealed }) => sealed) as [Buffer, Buffer, Buffer];
  return {
    provider: app.get(ProviderSecrets).open(PROVIDER, provider),
    webhook: app.get(WebhookSecrets).open(WEBHOOK, webhook),
    sink: app.get(SinkSecrets).open(SINK, sink),
  };
}

const settings = () =>
  database.query(
    `SELECT version, created_at, updated_at FROM provider UNION ALL
     SELECT version, created_at, updated_at FROM webhook UNION ALL SELECT version, created_at, updated_at FROM sink`,
  );

it('opens what was stored before', () =>
  withGateway({ MASTER_KEY: KEY }, async (gateway) => {
    expect(await opened(gateway)).toEqual(OPENED);
    expect(await reseal(gateway)).toEqual({ resealed: [], current: NAMES, unreadable: [] });
  }));

it('re-encrypts the rows of every module, and changes nothing else', async () => {
  const before = await settings();
  await withGateway({ MASTER_KEY: NEXT_KEY, MASTER_KEY_PREVIOUS: KEY }, async (gateway) => {
    expect(await reseal(gateway)).toEqual({ resealed: NAMES, current: [], unreadable: [] });
  });
  await withGateway({ MASTER_KEY: NEXT_KEY }, async (gateway) => {
    expect(await opened(gateway)).toEqual(OPENED);
  });
  expect(await settings()).toEqual(before);
  const records = await database.query(
    `SELECT subject_type, subject_id, subject_name, before, after FROM audit_log WHERE action = 'resealed' ORDER BY id`,
  );
  expect(records).toEqual([
    { subject_type: 'provider', subject_id: PROVIDER, subject_name: 'hidden', before: {}, after: {} },
    {
      subject_type: 'webhook',
      subject_id: WEBHOOK,
      subject_name: 'https://hooks.example.com',
      before: {},
      after: {},
    },
    { subject_type: 'sink', subject_id: SINK, subject_name: 'warehouse', before: {}, after: {} },
  ]);
});

it('reports what neither key opens', () =>
  withGateway({ MASTER_KEY: KEY }, async (gateway) => {
    expect(await reseal(gateway)).toEqual({ resealed: [], current: [], unreadable: NAMES });
  }));

it('re-encrypts the tokens that the OpenID provider gave for sign-ins and requests', async () => {
  const [person, key, signIn, request] = [1, 2, 3, 4].map((n) => `01890a5d-ac96-774b-bcce-b302099a900${n}`);
  await withGateway({ MASTER_KEY: KEY }, async ({ gateway: { app } }) => {
    const ofSignIn = app.get(SignInIdpSecrets).seal(signIn!, 'refresh token of a sign-in');
    const ofRequest = app.get(DeviceIdpSecrets).seal(request!, 'refresh token of a request');
    await database.query(
      `INSERT INTO person (id, issuer, subject, name) VALUES ($1, 'https://login.example.com', '1', 'Jane')`,
      [person],
    );
    await database.query(
      `INSERT INTO gateway_key (id, team_id, name) SELECT $1, id, 'jane' FROM team LIMIT 1`,
      [key],
    );
    await database.query(
      `INSERT INTO sign_in (id, person_id, key_id, surface, expires_at, idp_refresh)
       VALUES ($1, $2, $3, 'x', now() + interval '1 day', $4)`,
      [signIn, person, key, ofSignIn],
    );
    await database.query(
      `INSERT INTO device_request
         (id, device_digest, user_code_digest, surface, client_network, interval_s, expires_at, idp_refresh)
       VALUES ($1, 'a', 'b', 'x', 'c', 5, now() + interval '1 day', $2)`,
      [request, ofRequest],
    );
  });
  const names = [`sign-in ${signIn}`, `request to sign in ${request}`];
  await withGateway({ MASTER_KEY: NEXT_KEY, MASTER_KEY_PREVIOUS: KEY }, async (gateway) => {
    const { resealed, unreadable } = await reseal(gateway);
    expect([...resealed].sort()).toEqual([...names].sort());
    expect(unreadable).toEqual([]);
  });
  await withGateway({ MASTER_KEY: NEXT_KEY }, async ({ gateway: { app } }) => {
    const [stored] = await database.query<Record<'a' | 'b', Buffer>>(
      'SELECT (SELECT idp_refresh FROM sign_in) AS a, (SELECT idp_refresh FROM device_request) AS b',
    );
    expect(app.get(SignInIdpSecrets).open(signIn!, stored!.a)).toBe('refresh token of a sign-in');
    expect(app.get(DeviceIdpSecrets).open(request!, stored!.b)).toBe('refresh token of a request');
    // They are bound to their row and table.
    expect(() => app.get(SignInIdpSecrets).open(request!, stored!.b)).toThrow();
  });
});
