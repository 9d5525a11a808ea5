import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { compileProduct, compileTests } from '../../../scripts/compile.mjs';
import { makeMemoryFolder } from './memory-folder.mjs';

/** What is tested (some tests start dist/), and one cluster for the run (or TEST_DATABASE_URL), with a migrated template that each test file clones. */
export default async function globalSetup() {
  await Promise.all([compileTests(), compileProduct()]);
  const [{ startEmbeddedPostgres }, { migrate }, { createDaysAhead, createPartitions, DAY_MS }] =
    await Promise.all([
      import('../../../.test-build/src/embedded-postgres/embedded-postgres.js'),
      import('../../../.test-build/src/database/migrate.js'),
      import('../../../.test-build/src/request-log/partitions.js'),
    ]);
  const disk = tmpdir();
  // `npm run test:faults` is about the disk.
  const memory = process.env.POSTERN_TEST_FULL === '1' ? null : await makeMemoryFolder();
  if (memory !== null) process.env.TMPDIR = memory;
  globalThis.removeTemporaryFiles = () => memory && rm(memory, { recursive: true, force: true });
  let server = process.env.TEST_DATABASE_URL;
  if (!server) {
    const folder = await mkdtemp(join(tmpdir(), 'postern-jest-cluster-'));
    const cluster = await startEmbeddedPostgres({ dataDir: folder, fsync: false });
    globalThis.stopTestCluster = async (keep) => {
      await cluster.stop();
      if (keep) {
        const kept = memory === null ? folder : await mkdtemp(join(disk, 'postern-jest-cluster-'));
        if (kept !== folder) execFileSync('cp', ['-a', `${folder}/.`, kept]);
        process.stdout.write(`\nThe cluster with the databases of failed tests is kept in ${kept}\n`);
      } else {
        await rm(folder, { recursive: true, force: true });
        await rm(cluster.folder, { recursive: true, force: true });
      }
    };
    server = cluster.url;
  }
  const template = `postern_template_${process.pid}`;
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  if (globalThis.stopTestCluster) {
    // A run makes thousands of connections, and each derives a key in as many rounds as the password was stored with.
    await client.query(`SET scram_iterations = 1; ALTER ROLE postern PASSWORD '${client.password}'`);
    // Databases that live for seconds need none, and there are always some to look through.
    await client.query('ALTER SYSTEM SET autovacuum = off');
    await client.query('SELECT pg_reload_conf()');
  }
  await client.query(`CREATE DATABASE ${template}`);
  const url = new URL(server);
  url.pathname = `/${template}`;
  await migrate(url.href);
  // The partitions that each gateway would create, and one more: midnight may come. They take longer than the rest of a start.
  const withDays = `${template}_days`;
  await client.query(`CREATE DATABASE ${withDays} TEMPLATE ${template} STRATEGY file_copy`);
  await client.end();
  url.pathname = `/${withDays}`;
  const inTemplate = new pg.Client({ connectionString: url.href });
  await inTemplate.connect();
  await createDaysAhead(inTemplate);
  await createPartitions(inTemplate, [Date.now() + 8 * DAY_MS]);
  await inTemplate.end();
  process.env.POSTERN_TEST_SERVER = server;
  process.env.POSTERN_TEST_TEMPLATE = template;
}
