import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../../src/embedded-postgres/embedded-postgres.js';
import { EmbeddedPostgresError } from '../../src/embedded-postgres/embedded-postgres-error.js';
import { removeFolder, temporaryFolder } from '../config/temporary-folder.js';

let template: string;
let base: string;
let cluster: string;

const start = () => startEmbeddedPostgres({ dataDir: base, fsync: false });

async function rejection(): Promise<string> {
  const error = await start().then(
    (server) => server.stop().then(() => null),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(EmbeddedPostgresError);
  return (error as Error).message;
}

beforeAll(async () => {
  base = template = await temporaryFolder();
  await (await start()).stop();
});
afterAll(() => removeFolder(template));
beforeEach(async () => {
  base = await temporaryFolder();
  cluster = join(base, 'postgres', 'cluster');
  await rm(base, { recursive: true });
  await rename(template, base);
});
afterEach(async () => {
  await rename(base, template);
});

/** Removes or overwrites one file for the length of the task; its owner stays the same. */
async function damaged(name: string, content: string | null, task: () => Promise<void>): Promise<void> {
  const file = join(base, 'postgres', name);
  const original = await readFile(file);
  if (content === null) await rename(file, `${file}.saved`);
  else await writeFile(file, content);
  try {
    await task();
    if (content === null) await expect(readFile(file)).rejects.toThrow('ENOENT');
    else expect(await readFile(file, 'utf8')).toBe(content);
  } finally {
    if (content === null) await rename(`${file}.saved`, file);
    else await writeFile(file, original);
  }
}

it.each(['PG_VERSION', 'global/pg_control', 'postgresql.conf'])(
  'rejects a cluster without %s',
  async (part) => {
    await damaged(`cluster/${part}`, null, async () => {
      const message = await rejection();
      expect(message).toContain(
        `the database in ${cluster} cannot be used: ${part} is missing; restore it from a backup`,
      );
      expect(message).toContain('set DATABASE_URL');
      expect(message).toContain("Nothing was changed.\nThe end of the server's log:\n");
      expect(message).toContain('database system is shut down');
    });
  },
);

it('rejects a cluster of another major version', async () => {
  await damaged('cluster/PG_VERSION', '17\n', async () => {
    expect(await rejection()).toContain(
      `${cluster} was made by Postgres 17, this is 18; dump it with its own version`,
    );
  });
});

it('rejects a cluster that does not start, with the words of the server', async () => {
  await damaged('cluster/global/pg_control', 'x'.repeat(8192), async () => {
    const message = await rejection();
    expect(message).toContain('the server does not start; restore it from a backup');
    expect(message).toMatch(/PANIC|FATAL/);
  });
  await damaged('cluster/postgresql.conf', 'shared_buffers = plenty\n', async () => {
    expect(await rejection()).toContain('invalid value for parameter "shared_buffers": "plenty"');
  });
});

it('rejects a missing and a wrong password', async () => {
  await damaged('password', null, async () => {
    expect(await rejection()).toContain("password is missing or empty; put the database's password back");
  });
  await damaged('password', 'guess\n', async () => {
    expect(await rejection()).toContain('rejected the password in its folder; restore the right one');
  });
});
