import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { startPostgres } from '../../src/testing/index.js';
import { eventually } from '../support/eventually.js';

const FILE = join(__dirname, '../../.test-build/test/testing/postgres-process.js');

interface Printed {
  urls: string[];
  tables: number;
  folder: string;
}

it('runs one Postgres in a process, which ends with it, even if it is killed', async () => {
  const { TEST_DATABASE_URL: _, ...env } = process.env;
  const child = spawn(process.execPath, [FILE], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
  const { urls, tables, folder } = JSON.parse(line) as Printed;
  expect(new Set(urls.map((url) => new URL(url).host)).size).toBe(1);
  // Of a template that has the days of the log, which take longer than all else.
  expect(tables).toBe(9);
  child.kill('SIGKILL');
  await exited;
  await eventually(() => !existsSync(dirname(folder)));
});

it('starts one for a whole run', async () => {
  const server = await startPostgres();
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  const { rows } = await client.query<{ folder: string }>(
    "SELECT current_setting('data_directory') AS folder",
  );
  await client.end();
  await server.stop();
  await server.stop();
  expect(existsSync(dirname(rows[0]!.folder))).toBe(false);
});
