import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import type { TestDatabase } from '../support/database.js';
import { runBuilt } from '../support/process.js';
import type { RawProvider } from '../support/raw-provider.js';
import { Site } from '../support/site.js';
import type { Workplace } from '../support/workplace.js';

const ADMIN_TOKEN = randomBytes(24).toString('hex');
const MASTER_KEY = randomBytes(32).toString('base64');

let site: Site;
let database: TestDatabase;
let workplace: Workplace;
let provider: RawProvider;
beforeEach(async () => {
  site = await Site.make();
  ({ database, workplace, provider } = site);
});
afterEach(() => site.remove());

const settings = () => ({ DATABASE_URL: database.url, PROVIDER_URL: provider.url, ADMIN_TOKEN, MASTER_KEY });

const call = (url: string, path: string, key: string, body?: object) =>
  fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body ?? {}),
  });

/** What was logged, without the start-up messages. */
const logged = (text: string) =>
  text.split('\n').filter((line) => line !== '' && !line.startsWith('postern: '));

it('are JSON in production: start, stop, changes, rejections and errors, and no line for a call that went well', async () => {
  const env = { NODE_ENV: 'production', ...settings() };
  const gateway = workplace.gateway(env);
  const url = await gateway.ready();
  await (await call(url, '/admin/v1/teams', ADMIN_TOKEN, { name: 'search' })).json();
  const made = await call(url, '/admin/v1/keys', ADMIN_TOKEN, { team: 'search', name: 'ci' });
  const { id, key } = (await made.json()) as { id: string; key: string };
  for (let i = 0; i < 20; i++) expect((await call(url, '/v1/embeddings', key)).status).toBe(200);
  const rejected = await call(url, '/v1/files', key);
  await provider.stop();
  const failed = await call(url, '/v1/embeddings', key);
  expect([rejected.status, failed.status]).toEqual([403, 502]);
  await database.query('ALTER TABLE team RENAME TO gone');
  expect((await call(url, '/admin/v1/teams', ADMIN_TOKEN, { name: 'x' })).status).toBe(500);
  await database.query('ALTER TABLE gone RENAME TO team');
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });

  const lines = logged(gateway.process.stdout).map((line) => JSON.parse(line) as Record<string, unknown>);
  for (const line of lines) {
    expect(line).toMatchObject({ pid: gateway.process.pid, context: expect.any(String) as string });
    expect(new Date(line.time as string).toISOString()).toBe(line.time);
    expect(['info', 'warn']).toContain(line.level);
  }
  const prefix = key.slice(0, 12);
  const from = { client_ip: '127.0.0.1' };
  const change = { context: 'Audit', level: 'info', actor: 'admin-token', action: 'created', ...from };
  expect(lines).toMatchObject([
    { context: 'Postern', msg: `Serving on ${url}`, url },
    { ...change, subject_type: 'team', subject_name: 'search' },
    { ...change, subject_type: 'key', subject_name: 'search/ci', subject_id: id },
    {
      code: 'endpoint_not_allowed',
      request_id: rejected.headers.get('x-gateway-request-id'),
      key: prefix,
      ...from,
    },
    {
      code: 'upstream_unreachable',
      request_id: failed.headers.get('x-gateway-request-id'),
      key: prefix,
      ...from,
    },
    { context: 'Shutdown', msg: expect.stringMatching(/^Stopping; /) as string },
    { context: 'Postern', msg: 'Stopped.' },
  ]);
  const [error, ...more] = logged(gateway.process.stderr).map((line) => JSON.parse(line) as object);
  expect(error).toMatchObject({
    level: 'error',
    context: 'Admin',
    request_id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
    stack: expect.stringContaining('\n') as string,
  });
  expect(more).toEqual([]);
  for (const secret of [key, ADMIN_TOKEN, MASTER_KEY]) {
    expect(gateway.process.stdout + gateway.process.stderr).not.toContain(secret);
  }
});

it('are readable lines elsewhere, and tell no change that was rolled back, nor one that a command made on the database', async () => {
  await database.query(
    `CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$`,
  );
  await database.query(
    `CREATE CONSTRAINT TRIGGER reject AFTER INSERT ON team DEFERRABLE INITIALLY DEFERRED
     FOR EACH ROW WHEN (NEW.name = 'late') EXECUTE FUNCTION reject()`,
  );
  const gateway = workplace.gateway({ NODE_ENV: 'development', ...settings() });
  const url = await gateway.ready();
  await gateway.firstKey();
  expect((await call(url, '/admin/v1/teams', ADMIN_TOKEN, { name: 'late' })).status).toBe(500);
  // With the DATA_DIR of the gateway, the command would ask the gateway to make the change.
  const env = { ...settings(), DATA_DIR: join(workplace.folder, 'elsewhere') };
  const command = runBuilt('cli/start', ['teams', 'create', 'by-command'], { cwd: workplace.folder, env });
  expect(await command.ended).toEqual({ code: 0, signal: null });
  expect((await call(url, '/admin/v1/teams', ADMIN_TOKEN, { name: 'fine' })).status).toBe(201);
  expect(command.stdout).not.toContain('created team by-command');
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  const lines = logged(gateway.process.stdout).filter((line) => /^\d{4}-/.test(line));
  expect(lines.map((line) => line.replace(/^\S+Z /, '').replace(/\([0-9a-f-]{36}\)/, '(<id>)'))).toEqual([
    'INFO  Audit: admin-token from 127.0.0.1 created team fine (<id>)',
    'INFO  Shutdown: Stopping; 0 requests in flight.',
    'INFO  Postern: Stopped.',
  ]);
});
