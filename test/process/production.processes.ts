import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import type { TestDatabase } from '../support/database.js';
import { runBuilt } from '../support/process.js';
import type { RawProvider } from '../support/raw-provider.js';
import { Site } from '../support/site.js';
import type { Workplace } from '../support/workplace.js';

let site: Site;
let database: TestDatabase;
let workplace: Workplace;
let provider: RawProvider;

beforeAll(async () => {
  site = await Site.make({ empty: true });
  ({ database, workplace, provider } = site);
});
afterAll(() => site.remove());

it('demands its secrets and its database', async () => {
  const { process } = workplace.gateway({ NODE_ENV: 'production' });
  expect(await process.ended).toEqual({ code: 1, signal: null });
  for (const name of ['ADMIN_TOKEN', 'MASTER_KEY', 'DATABASE_URL']) expect(process.stderr).toContain(name);
  expect(await readdir(workplace.folder)).toEqual([]);
});

it('makes no secret and no key, and says how to make a key', async () => {
  const settings = {
    NODE_ENV: 'production',
    ADMIN_TOKEN: randomBytes(24).toString('hex'),
    MASTER_KEY: randomBytes(32).toString('base64'),
    DATABASE_URL: database.url,
    PROVIDER_URL: provider.url,
  };
  const gateway = workplace.gateway(settings);
  const url = await gateway.ready();
  const { process } = gateway;
  await process.until(/no gateway key yet; create one: \S*postern teams create .* \S*postern keys create /);
  expect(process.stdout).not.toMatch(/ptn_|admin token is in/);
  expect(process.stdout).toContain('/console; sign in with ADMIN_TOKEN\n');
  for (const secret of [settings.ADMIN_TOKEN, settings.MASTER_KEY, settings.DATABASE_URL]) {
    expect(process.stdout + process.stderr).not.toContain(secret);
  }
  expect(await readdir(workplace.dataDir)).not.toContain('secrets');
  expect(await database.query('SELECT FROM gateway_key')).toEqual([]);

  const postern = async (...args: string[]) => {
    const run = runBuilt('cli/start', args, { cwd: workplace.folder, env: settings });
    expect(await run.ended).toEqual({ code: 0, signal: null });
    return run.stdout;
  };
  await postern('teams', 'create', 'search');
  const { key } = JSON.parse(
    await postern('keys', 'create', '--team', 'search', '--name', 'ci', '--json'),
  ) as { key: string };
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: '{}' });
  expect([response.status, await response.text()]).toEqual([200, 'ok']);
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });

  const again = workplace.gateway(settings);
  await again.ready();
  expect(again.process.stdout).not.toContain('no gateway key');
  expect(await again.stop()).toEqual({ code: 0, signal: null });
});
