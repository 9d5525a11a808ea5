import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { FUNCTIONS, readFunction } from '../../src/database/functions.js';
import { migrate } from '../../src/database/migrate.js';
import { MIGRATIONS } from '../../src/database/migrations.js';
import { runCli } from '../cli/run-cli.js';
import { createDatabase, type TestDatabase } from '../support/database.js';

const root = join(__dirname, '../..');
const databases: TestDatabase[] = [];
const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
  for (const database of databases.splice(0)) await database.drop();
});

async function newDatabase(options = {}): Promise<TestDatabase> {
  const database = await createDatabase(options);
  databases.push(database);
  return database;
}

/** As a release before left it. */
async function databaseOf(migrations: typeof MIGRATIONS): Promise<TestDatabase> {
  const database = await newDatabase({ empty: true });
  const options = dataSourceOptions(database.url, { applicationName: 'postern-test', poolSize: 1 });
  const before = await new DataSource({ ...options, migrations }).initialize();
  await before.runMigrations();
  await before.destroy();
  return database;
}

/** Definitions by the names of all functions, and what is between the first `$` and the last. */
async function functionsIn(database: TestDatabase) {
  const rows = await database.query<{ name: string; definition: string; body: string }>(`
    SELECT proname AS name, pg_get_functiondef(oid) AS definition, prosrc AS body FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace ORDER BY oid::regprocedure::text`);
  return {
    definitions: rows.map(({ definition }) => definition),
    bodies: Object.fromEntries(rows.map(({ name, body }) => [name, body])),
    count: rows.length,
  };
}

const bodyIn = (text: string) => /\$\$([^]*)\$\$/.exec(text)![1]!;

/** The product, with other texts of some functions. @returns runs its command line */
async function release(texts: Record<string, (text: string) => string>) {
  const folder = await mkdtemp(join(tmpdir(), 'postern-release-'));
  folders.push(folder);
  for (const name of ['package.json', 'dist/bundled', 'dist/src', 'dist/migrations'])
    await cp(join(root, name), join(folder, name), { recursive: true });
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  for (const [name, change] of Object.entries(texts)) {
    const path = join(folder, 'dist/migrations/functions', `${name}.sql`);
    await writeFile(path, change(await readFile(path, 'utf8')));
  }
  const main = join(folder, 'dist/src/cli/start.js');
  return (args: string[], { url }: TestDatabase, env = {}) =>
    runCli(args, { DATABASE_URL: url, ...env }, undefined, '', main);
}

const nextRevision = (text: string) =>
  text.replace(/^-- Revision (\d+)/, (_, revision) => `-- Revision ${Number(revision) + 1}`);
const changed = (text: string) => text.replace('BEGIN', 'BEGIN -- as of the next release');
const newer = (text: string) => nextRevision(changed(text));
const broken = (text: string) => nextRevision(text.replace('END $', 'ENDS $'));

const did = (...names: string[]) => ({
  code: 0,
  stdout: `${JSON.stringify({ migrated: names }, null, 2).replace('[\n\n  ]', '[]')}\n`,
});
const MIGRATE = ['migrate', '--json'];

it('a new database and those of earlier releases have the functions of the files, byte for byte', async () => {
  const fresh = await newDatabase({ empty: true });
  await migrate(fresh.url);
  const made = await functionsIn(fresh);
  const files = await Promise.all(FUNCTIONS.map(readFunction));
  expect(made.count).toBe(FUNCTIONS.length);
  expect(made.bodies).toEqual(Object.fromEntries(files.map(({ name, text }) => [name, bodyIn(text)])));
  for (const name of ['RequestLogCharges', 'LimitLockedMeters', 'StoredFunctions']) {
    const upTo = MIGRATIONS.findIndex((each) => each.name.startsWith(name));
    const older = await databaseOf(MIGRATIONS.slice(0, upTo));
    await migrate(older.url);
    expect((await functionsIn(older)).definitions).toEqual(made.definitions);
  }
});

it('the first revision of a file does what the migrations had made', async () => {
  const database = await newDatabase();
  const rows = await database.query<{ name: string; migrated: string }>(
    'SELECT name, migrated FROM stored_function WHERE migrated IS NOT NULL',
  );
  const code = (text: string) => text.replace(/--.*/g, '').replace(/\s+/g, '');
  const files = await Promise.all(FUNCTIONS.map(readFunction));
  const first = files.filter(({ revision }) => revision === 1);
  const bodies = new Map(rows.map(({ name, migrated }) => [name, code(migrated.split('$function$')[1]!)]));
  for (const { name, text } of first.filter(({ name }) => bodies.has(name)))
    expect([name, code(bodyIn(text))]).toEqual([name, bodies.get(name)]);
});

it('a changed file is applied once, and an older version leaves it in place', async () => {
  const database = await newDatabase();
  const next = await release({ webhook_emit: newer, limit_emit: changed });
  expect(await next(MIGRATE, database)).toMatchObject(did('limit_emit()', 'webhook_emit()'));
  const { definitions, bodies } = await functionsIn(database);
  expect([bodies.webhook_emit, bodies.limit_emit]).toEqual(
    Array(2).fill(expect.stringContaining('as of the next release')),
  );
  expect(await next(MIGRATE, database)).toMatchObject(did());
  // The one without a new revision is as in development, where the last one that starts wins.
  expect(await migrate(database.url)).toEqual(['limit_emit()']);
  expect(await next(MIGRATE, database)).toMatchObject(did('limit_emit()'));
  expect((await functionsIn(database)).definitions).toEqual(definitions);
});

it('a function that is gone or was changed in Postgres is as in its file again', async () => {
  const database = await newDatabase();
  const before = await functionsIn(database);
  await database.query('DROP FUNCTION limit_sweep()');
  await database.query(
    before.definitions
      .find((text) => text.includes('.webhook_emit('))!
      .replace('IF v_event IS NULL', 'IF true'),
  );
  expect(await migrate(database.url)).toEqual(['limit_sweep()', 'webhook_emit()']);
  expect(await functionsIn(database)).toEqual(before);
});

it('of a file that Postgres rejects, the start tells the name, and changes nothing', async () => {
  const database = await newDatabase();
  const before = await functionsIn(database);
  const next = await release({ count_change: newer, webhook_emit: broken });
  for (const command of [MIGRATE, ['teams', 'list']]) {
    const { code, stderr } = await next(command, database);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('migrations/functions/webhook_emit.sql: unexpected end'),
    ]);
  }
  expect(await functionsIn(database)).toEqual(before);
  expect(await migrate(database.url)).toEqual([]);
});

it('without one of the files, the start says that the installation is not whole', async () => {
  const database = await newDatabase();
  const next = await release({});
  await rm(join(folders.at(-1)!, 'dist/migrations/functions/webhook_emit.sql'));
  const { code, stderr } = await next(MIGRATE, database);
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^error: .*webhook_emit\.sql cannot be read: this installation is not whole/),
  ]);
});

it('two replicas that start at once apply each file once', async () => {
  const database = await newDatabase();
  const next = await release({ count_change: newer, webhook_emit: newer });
  const ran = await Promise.all([1, 2].map(() => next(MIGRATE, database)));
  expect(ran.map(({ stdout }) => stdout).sort()).toEqual(
    [did('count_change()', 'webhook_emit()'), did()].map(({ stdout }) => stdout).sort(),
  );
});

it('with MIGRATE=off, a changed file is left to postern migrate', async () => {
  const database = await newDatabase();
  const next = await release({ webhook_emit: newer });
  const off = { MIGRATE: 'off' };
  const { code, stderr } = await next(['teams', 'list'], database, off);
  expect([code, stderr]).toEqual([1, expect.stringContaining('postern migrate')]);
  expect(await next(['migrate'], database, off)).toMatchObject({
    code: 0,
    stdout: 'Migrated: webhook_emit()\n',
  });
  expect(await next(['teams', 'list'], database, off)).toMatchObject({ code: 0 });
});
