import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PolicyView } from '../../src/policies-by-url/policies.schema.js';
import { deny, Filter, isSigned, newSecret } from '../policies-by-url/filter.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { runHere } from './run-here.js';

const MASTER_KEY = randomBytes(32).toString('base64');
let database: TestDatabase;
let filter: Filter;
beforeAll(async () => {
  database = await createDatabase();
  filter = await new Filter().listen();
});
afterAll(async () => {
  await filter.close();
  await database.drop();
});

const postern = (args: string[], input = '') =>
  runHere(args, { DATABASE_URL: database.url, MASTER_KEY }, undefined, input);
const cli = (args: string[], input = '') => postern(['policies', ...args], input);
const shown = async (): Promise<PolicyView> =>
  JSON.parse((await cli(['show', 'dlp', '--json'])).stdout) as PolicyView;

it('creates, shows, changes, tests, disables and deletes a policy by its name', async () => {
  const secret = newSecret();
  await postern(['teams', 'create', 'support']);
  await postern(['keys', 'create', '--team', 'support', '--name', 'bot']);
  const create = ['create', 'dlp', '--url', filter.url, '--send', 'body', '--timeout-ms', '30000'];
  const created = await cli([...create, '--team', 'support', '--model', 'gpt-5*'], `${secret}\n`);
  expect(created).toMatchObject({ code: 0 });
  expect(created.stdout).toMatch(/^Created policy dlp \([0-9a-f-]{36}\)\.$/m);
  expect((await cli(['list'])).stdout).toMatch(/^dlp +enabled +team support, to gpt-5\* +body +reject/m);
  expect((await cli(['show', 'dlp'])).stdout).toMatch(/^asked about +team support, to gpt-5\*$/m);

  const folder = await mkdtemp(join(tmpdir(), 'postern-policies-'));
  const body = '{"model":"gpt-5-mini","x":"é"}';
  await writeFile(join(folder, 'request.json'), body);
  filter.respond = deny;
  const test = ['test', 'dlp', '--body', join(folder, 'request.json'), '--key', 'support/bot'];
  const tested = await cli([
    ...test,
    '--model',
    'gpt-5-mini',
    '--end-user',
    'u',
    '--endpoint',
    '/v1/messages',
  ]);
  expect(tested).toMatchObject({ code: 0, stderr: '' });
  expect(tested.stdout).toMatch(
    /^ok, \d+ ms\nOK: the call would be rejected\.\npii_found: No card numbers, please\.\n$/,
  );
  const [asked] = filter.asked;
  expect(asked!.body.toString()).toBe(body);
  expect(isSigned(asked!, secret)).toBe(true);
  const facts = { model: 'gpt-5-mini', end_user: 'u', endpoint: '/v1/messages' };
  expect(asked!.call).toMatchObject(facts);
  filter.respond = (res) => res.writeHead(500).end();
  const failed = await cli(['test', 'dlp']);
  expect(failed).toMatchObject({ code: 1, stdout: '' });
  expect(failed.stderr).toContain('must respond with status 200');
  const missing = await cli(['test', 'dlp', '--body', join(folder, 'none.json')]);
  expect(missing.stderr).toContain('cannot be read (ENOENT)');
  await rm(folder, { recursive: true });

  const another = newSecret();
  const changed = await cli(['update', 'dlp', '--on-failure', 'allow', '--all-calls', '--secret'], another);
  expect(changed).toMatchObject({ code: 0, stderr: '' });
  expect(await shown()).toMatchObject({
    on_failure: 'allow',
    applies_to: { teams: null, keys: null, models: null },
  });
  await cli(['test', 'dlp']);
  expect(isSigned(filter.asked.at(-1)!, another)).toBe(true);
  await cli(['update', 'dlp', '--key', 'support/bot', '--order', '3', '--cache-seconds', '60']);
  const scoped = { keys: ['support/bot'], teams: null, models: null };
  expect(await shown()).toMatchObject({ applies_to: scoped, order: 3, cache_seconds: 60 });
  expect((await cli(['update', 'dlp', '--timeout-ms', 'soon'])).stderr).toContain('from 10 to 30000');
  expect((await cli(['update', 'dlp', '--team', 'a', '--all-calls'])).stderr).toContain('not both');
  expect((await cli(['update', 'dlp'])).stderr).toContain('nothing to change');

  expect(await cli(['disable', 'dlp'])).toMatchObject({ code: 0, stdout: 'Policy dlp is disabled.\n' });
  expect(await cli(['enable', 'dlp'])).toMatchObject({ code: 0, stdout: 'Policy dlp is enabled.\n' });
  expect(await cli(['delete', 'dlp', '--yes'])).toMatchObject({ code: 0, stdout: 'Deleted policy dlp.\n' });
  expect((await cli(['show', 'dlp'])).stderr).toContain('no policy has this name or id');

  const { stdout } = await postern(['audit', 'list', '--json']);
  for (const hidden of [secret, another, 'canary']) expect(stdout).not.toContain(hidden);
});
