import { fileSchema } from '../../src/apply/file-schema.js';
import { MetricsService } from '../../src/observability/metrics.service.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { compare, compareFile } from './compare.js';
import { read } from './pages.js';
import { adminApiReference, type OpenApi } from './reference/admin-api.js';
import { cliReference, commands } from './reference/cli.js';
import { clientSchema } from './reference/client.js';
import { type Column, columnsReference } from './reference/columns.js';
import { errorsReference } from './reference/errors.js';
import { metricsReference, type RegisteredMetric } from './reference/metrics.js';
import { settingsReference } from './reference/settings.js';
import { type Table, tablesReference } from './reference/tables.js';

let provider: RawProvider;
let postern: TestGateway;
/** The API document of the running gateway. */
let api: OpenApi;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'ok'));
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
  const response = await fetch(`${postern.url}/docs-json`);
  expect(response.status).toBe(200);
  // Files of one worker share modules: the kinds of another file's own module may be in the lists by now.
  const isOurs = (word: unknown) => word !== 'quota';
  api = JSON.parse(await response.text(), (name, value: unknown) =>
    name === 'enum' ? (value as unknown[]).filter(isOurs) : value,
  ) as OpenApi;
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

describe('what is generated is what the code says; if it is stale, `npm run docs` writes it', () => {
  it('settings.md has every setting, from .env.example and the schema', () => {
    compare('settings.md', 'settings', settingsReference(read('.env.example')));
  });

  it('errors.md has every error of the gateway, as it is sent', () => {
    compare('errors.md', 'errors', errorsReference());
  });

  it('cli.md has the help of every command', async () => {
    const all = await commands();
    expect(all.length).toBeGreaterThan(15);
    compare('cli.md', 'commands', cliReference(all));
  });

  it('openapi.json is the API document of the running gateway', () => {
    compareFile('openapi.json', `${JSON.stringify(api, null, 2)}\n`);
  });

  it('the client has the types of openapi.json', async () => {
    compareFile('src/client/schema.ts', await clientSchema(JSON.stringify(api)));
  });

  it('postern.schema.json is the schema of the file for postern apply', () => {
    compareFile('docs/reference/postern.schema.json', `${JSON.stringify(fileSchema(), null, 2)}\n`);
  });

  it('admin-api.md has every endpoint and schema', () => {
    compare('admin-api.md', 'endpoints', adminApiReference(api));
  });

  it('metrics.md has every metric of the gateway', () => {
    const registered = postern.gateway.app.get(MetricsService)['registry'].getMetricsAsArray();
    compare('metrics.md', 'metrics', metricsReference(registered as unknown as RegisteredMetric[]));
  });

  it('request-log-columns.md has every column of the table', async () => {
    const columns = await postern.database.query<Column>(
      `SELECT attname AS name, format_type(atttypid, atttypmod) AS type, NOT attnotnull AS nullable
     FROM pg_attribute WHERE attrelid = 'request_log'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
    );
    compare('request-log-columns.md', 'columns', columnsReference(columns));
  });

  it('tables.md has every table', async () => {
    const tables = await postern.database.query<Table>(
      `SELECT relname AS name, obj_description(oid, 'pg_class') AS comment FROM pg_class
       WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace ORDER BY 1`,
    );
    compare('tables.md', 'tables', tablesReference(tables));
  });
});
