import { randomBytes } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase, type TestDatabase } from '../../support/database.js';
import { eventually, timePasses } from '../../support/eventually.js';
import { ADMIN_TOKEN } from '../../support/gateway.js';
import { Workplace } from '../../support/workplace.js';
import { bearer, Clouds, jsonOf, jwt } from './clouds.js';
import { OPENAI } from './keyless-gateway.js';

/** Tokens of two seconds are renewed after one. */
const LIFE_S = 2;

let clouds: Clouds;
let database: TestDatabase;
let folder: string;
let file: string;
let settings: Record<string, string>;
const workplaces: Workplace[] = [];

beforeAll(async () => {
  clouds = await Clouds.start();
  database = await createDatabase();
  folder = mkdtempSync(join(tmpdir(), 'postern-identity-'));
  file = join(folder, 'token');
  settings = {
    DATABASE_URL: database.url,
    ADMIN_TOKEN,
    MASTER_KEY: randomBytes(32).toString('base64'),
    IDENTITY_TOKEN_FILES: `openai=${file}@https://auth.openai.com`,
    POSTERN_TEST_PRELOAD: join(__dirname, 'cloud-hosts.cjs'),
    POSTERN_TEST_CLOUDS: JSON.stringify(clouds.redirect),
  };
});
afterAll(async () => {
  await Promise.all(workplaces.map((workplace) => workplace.remove()));
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

async function start(workplace: Workplace) {
  const gateway = workplace.gateway(settings);
  return { gateway, url: await gateway.ready() };
}

async function admin<T>(url: string, path: string, body: object): Promise<T> {
  const response = await fetch(`${url}/admin/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

it('renews tokens under load on three replicas while the identity token is replaced; one is killed and starts again', async () => {
  const identities: string[] = [];
  const rotate = () => {
    const token = jwt('postern');
    identities.push(token);
    writeFileSync(`${file}.new`, token);
    renameSync(`${file}.new`, file);
  };
  rotate();
  const issued = new Set<string>();
  const subjects = new Set<unknown>();
  clouds.hosts.set('auth.openai.com', (asked) => {
    subjects.add(jsonOf(asked).subject_token);
    issued.add(`Bearer access-${issued.size + 1}`);
    return bearer(`access-${issued.size}`, LIFE_S);
  });
  const used = new Set<string>();
  clouds.hosts.set('api.openai.com', ({ headers: { authorization = '' } }) => {
    used.add(authorization);
    return issued.has(authorization) ? {} : { status: 401 };
  });

  for (let i = 0; i < 3; i++) workplaces.push(await Workplace.make());
  const replicas = [await start(workplaces[0]!)];
  replicas.push(...(await Promise.all(workplaces.slice(1).map(start))));
  const { url } = replicas[0]!;
  await admin(url, '/providers', { name: 'openai', ...OPENAI });
  const { key } = await admin<{ key: string }>(url, '/keys', { team: 'default', name: 'load' });

  let isOver = false;
  const statuses = new Map<number, number>();
  let broken = 0;
  const call = async (at: string) => {
    const response = await fetch(`${at}/p/openai/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: '{"model":"m"}',
    });
    await response.arrayBuffer();
    return response.status;
  };
  const load = async (at: string) => {
    while (!isOver) {
      const status = await call(at).catch(() => null);
      if (status === null) {
        broken++;
        return;
      }
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  // The new provider is known on each replica.
  for (const replica of replicas) await eventually(async () => (await call(replica.url)) === 200);
  const loads = replicas.flatMap((replica) => Array.from({ length: 8 }, () => load(replica.url)));
  const rotating = (async () => {
    while (!isOver) {
      await timePasses(500, 'the identity token is replaced');
      rotate();
    }
  })();

  await eventually(() => issued.size >= 12);
  await replicas[2]!.gateway.process.kill();
  const before = issued.size;
  await eventually(() => issued.size >= before + 4);
  const again = await start(workplaces[2]!);
  await eventually(async () => (await call(again.url)) === 200);
  isOver = true;
  await Promise.all([...loads, rotating]);

  expect([...statuses.keys()]).toEqual([200]);
  // Those of the replica that was killed.
  expect(broken).toBeLessThanOrEqual(8);
  expect(used.size).toBeGreaterThan(12);
  // Always a whole one, and never the first one for ever.
  expect(subjects.size).toBeGreaterThan(3);
  expect(identities).toEqual(expect.arrayContaining([...subjects]));
  for (const replica of replicas)
    expect(replica.gateway.process.stdout + replica.gateway.process.stderr).not.toMatch(/access-\d|eyJ/);
});
