import { ProvidersService } from '../../src/providers/providers.service.js';
import type { GatewayError } from '../../src/errors/gateway-error.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import type { RawProvider } from '../support/raw-provider.js';
import { TcpForwarder } from '../support/tcp-forwarder.js';
import { namedProvider, outcomeOf, SHARED } from './stored.js';

let providers: [RawProvider, RawProvider];
let here: TestGateway;
let there: TestGateway;
let database: TestDatabase;

beforeAll(async () => {
  providers = [await namedProvider('a'), await namedProvider('b')];
  here = await startTestGateway(SHARED);
  ({ database } = here);
  there = await startTestGateway(SHARED, database);
});
afterAll(async () => {
  await there.stop();
  await here.stop();
  for (const provider of providers) await provider.stop();
});

const seenThere = (path: string, outcome: string) =>
  eventually(async () => (await outcomeOf(there, path, here.key)) === outcome);

it('reaches another gateway: added, changed, disabled, made the default, removed', async () => {
  await here.admin('POST', '/providers', { name: 'live', url: providers[0].url, secret: 'sk-a' });
  await seenThere('/p/live/v1/models', 'a');
  await here.admin('PATCH', '/providers/live', { url: providers[1].url, secret: 'sk-b', default: true });
  await seenThere('/v1/models', 'b');
  expect(providers[1].requests.at(-1)!.headers).toContainEqual(['Authorization', 'Bearer sk-b']);
  await here.admin('PATCH', '/providers/live', { enabled: false });
  await seenThere('/p/live/v1/models', '404 provider_not_found');
  await database.query("DELETE FROM provider WHERE name = 'live'");
  await seenThere('/v1/models', '503 no_provider_configured');
});

it('is none if the settings of a credential come as they are shown, whatever their order in the database', async () => {
  const auth_settings = { region: 'eu-central-1', service: 'bedrock', access_key_id: 'AKIAIOSFODNN7EXAMPLE' };
  const url = 'https://bedrock-runtime.eu-central-1.amazonaws.com';
  const body = { name: 'cloud', url, auth: 'aws-sigv4', auth_settings, secret: 'of-the-access-key' };
  await here.admin('POST', '/providers', body);
  const keyless = { auth_settings: { credentials: 'instance', access_key_id: null }, secret: null };
  const shown = await here.admin('PATCH', '/providers/cloud', keyless);
  const again = { auth_settings: shown.auth_settings, secret: null };
  expect(await here.admin('PATCH', '/providers/cloud', again)).toEqual(shown);
});

it('reaches another gateway although the connection that listens was killed', async () => {
  await here.admin('POST', '/providers', { name: 'cut', url: providers[0].url, secret: null });
  await seenThere('/p/cut/v1/models', 'a');
  await database.query(`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name LIKE 'postern-changes%' AND datname = current_database()`);
  await database.query("UPDATE provider SET enabled = false WHERE name = 'cut'");
  await seenThere('/p/cut/v1/models', '404 provider_not_found');
});

it('reaches another gateway although its notification was swallowed', async () => {
  await here.admin('POST', '/providers', { name: 'mute', url: providers[0].url, secret: null });
  await seenThere('/p/mute/v1/models', 'a');
  await database.query(`
    BEGIN;
    SET LOCAL session_replication_role = replica;
    UPDATE provider SET enabled = false WHERE name = 'mute';
    UPDATE change_counter SET value = value + 1 WHERE name = 'providers';
    COMMIT`);
  await seenThere('/p/mute/v1/models', '404 provider_not_found');
});

it('follows a counter that went back with a restored backup', async () => {
  await here.admin('POST', '/providers', { name: 'restored', url: providers[0].url, secret: null });
  await seenThere('/p/restored/v1/models', 'a');
  await database.query(`
    BEGIN;
    SET LOCAL session_replication_role = replica;
    DELETE FROM provider WHERE name = 'restored';
    UPDATE change_counter SET value = 1 WHERE name = 'providers';
    COMMIT`);
  await seenThere('/p/restored/v1/models', '404 provider_not_found');
  await here.admin('POST', '/providers', { name: 'restored', url: providers[1].url, secret: null });
  await seenThere('/p/restored/v1/models', 'b');
});

describe('with Postgres unavailable', () => {
  it('goes on with the last known providers, and follows changes again afterwards', async () => {
    const forwarder = await TcpForwarder.to(database.url);
    await forwarder.open();
    const apart = await startTestGateway({ ...SHARED, DATABASE_URL: forwarder.url }, database);
    await here.admin('POST', '/providers', { name: 'kept', url: providers[0].url, secret: 'sk-kept' });
    await eventually(async () => (await outcomeOf(apart, '/p/kept/v1/models', here.key)) === 'a');
    await forwarder.close();
    expect(await outcomeOf(apart, '/p/kept/v1/models', here.key)).toBe('a');
    expect(await outcomeOf(apart, '/p/unknown/v1/models', here.key)).toBe('404 provider_not_found');
    await here.admin('PATCH', '/providers/kept', { url: providers[1].url, secret: 'sk-kept' });
    await forwarder.open();
    await eventually(async () => (await outcomeOf(apart, '/p/kept/v1/models', here.key)) === 'b');
    await apart.stop();
    await forwarder.close();
  });

  it('gets 503 and not that there is no such provider, when none was ever read', async () => {
    const empty = await createDatabase();
    const forwarder = await TcpForwarder.to(empty.url);
    const blind = await startTestGateway({ DATABASE_URL: forwarder.url }, empty);
    const known = blind.gateway.app.get(ProvidersService);
    const rejection = (name: string | null): string => {
      try {
        return known.resolve(name, { teamId: 'any', providers: null, defaultProvider: null }).name;
      } catch (error) {
        return (error as GatewayError).code;
      }
    };
    expect([rejection(null), rejection('kept')]).toEqual(['database_unavailable', 'database_unavailable']);
    await forwarder.open();
    await eventually(() => rejection('kept') === 'provider_not_found');
    expect(rejection(null)).toBe('no_provider_configured');
    await blind.stop();
    await forwarder.close();
    await empty.drop();
  });
});
