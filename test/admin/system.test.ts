import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/platform/package-root.js';
import { SECRET_VARIABLES } from '../../src/config/env-schema.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { answer, RawProvider } from '../support/raw-provider.js';

interface System {
  version: string;
  commit: string | null;
  node: string;
  started_at: string;
  status: string;
  reasons: string[];
  journal: { accepting: boolean; degraded: string | null; bytes: number; oldest_seconds: number };
  log_writer: { persisted: number; waiting: number; rejected: number; failing_seconds: number };
  database: { version: string; bytes: number };
  processes: { address: string | null; connected_at: string }[];
  partitions: { name: string; bytes: number; rows: number | null }[];
  settings: { name: string; changed: boolean; hidden: boolean; value: string | null }[];
}

const SECRET = 'sk-secret-of-the-default-provider';

let provider: RawProvider;
let postern: TestGateway;
beforeAll(async () => {
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'ok')));
  postern = await startTestGateway({ PROVIDER_URL: provider.url, PROVIDER_KEY: SECRET, LOG_LEVEL: 'error' });
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

const system = () => postern.admin<System>('GET', '/system');

describe('GET /admin/v1/system', () => {
  it('shows this process and the database as they are', async () => {
    const shown = await system();
    expect(shown).toMatchObject({ status: 'ok', version: '0.1.0', node: process.version, reasons: [] });
    expect(shown.journal).toMatchObject({ accepting: true, degraded: null });
    const { database } = postern;
    const [server] = await database.query<{ version: string }>(
      `SELECT current_setting('server_version') AS version`,
    );
    expect(shown.database.version).toBe(server!.version);
    expect(shown.database.bytes).toBeGreaterThan(1_000_000);
    const days = await database.query<{ name: string }>(
      `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'request_log'::regclass ORDER BY 1 DESC`,
    );
    expect(shown.partitions.map(({ name }) => name)).toEqual(days.map(({ name }) => name));
    expect(days.length).toBeGreaterThan(0);
  });

  it('says which commit runs, and what is new in it', async () => {
    const head = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: __dirname, encoding: 'utf8' }).trim();
    expect((await system()).commit).toBe(head);
    const response = await fetch(`${postern.url}/admin/v1/system/changelog`, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(await response.text()).toBe(readFileSync(join(packageRoot(), 'CHANGELOG.md'), 'utf8'));
  });

  it('counts the rows that this process wrote', async () => {
    const { persisted } = (await system()).log_writer;
    const response = await fetch(`${postern.url}/v1/models`, {
      headers: { authorization: `Bearer ${postern.key}` },
    });
    expect(response.status).toBe(200);
    await eventually(async () => (await system()).log_writer.persisted === persisted + 1);
  });

  it('shows one process for each that is connected', async () => {
    await eventually(async () => (await system()).processes.length === 1);
    const replica = await startTestGateway({}, postern.database);
    await eventually(async () => (await system()).processes.length === 2);
    await replica.stop();
    await eventually(async () => (await system()).processes.length === 1);
  });

  it('names settings that are not the default, and shows values, but none of secrets', async () => {
    const { settings } = await system();
    const changed = settings.filter((setting) => setting.changed).map(({ name }) => name);
    expect(changed).toEqual(
      expect.arrayContaining(['PROVIDER_URL', 'PROVIDER_KEY', 'LOG_LEVEL', 'DATABASE_URL']),
    );
    expect(changed).not.toContain('SHUTDOWN_DELAY_MS');
    expect(settings.map(({ name }) => name)).toContain('SHUTDOWN_DELAY_MS');
    const named = (name: string) => settings.find((one) => one.name === name);
    expect(named('LOG_LEVEL')).toMatchObject({ hidden: false, value: 'error' });
    expect(named('REPORT_TIMEZONE')).toMatchObject({ changed: false, hidden: false, value: 'UTC' });
    expect(named('REQUEST_LOG_RETENTION_DAYS')).toMatchObject({ changed: false, value: '90' });
    expect(named('MIGRATE')).toMatchObject({ changed: false, value: 'on' });
    expect(named('ADMIN_PORT')).toMatchObject({ hidden: false, value: null });
    for (const name of [...SECRET_VARIABLES, 'OTEL_EXPORTER_OTLP_ENDPOINT'])
      expect(named(name)).toMatchObject({ hidden: true, value: null });
    const text = await (
      await fetch(`${postern.url}/admin/v1/system`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })
    ).text();
    for (const secret of [SECRET, ADMIN_TOKEN, postern.database.url]) expect(text).not.toContain(secret);
  });
});
