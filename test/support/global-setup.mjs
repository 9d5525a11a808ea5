import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../dist/src/embedded-postgres/embedded-postgres.js';
import { migrate } from '../../dist/src/database/migrate.js';

/**
 * One cluster for the run (or TEST_DATABASE_URL), with a migrated template that each test file clones. Jest loads this
 * file outside its transforms, so it uses the build that `npm test` has just made.
 */
export default async function globalSetup() {
  let server = process.env.TEST_DATABASE_URL;
  if (!server) {
    const folder = await mkdtemp(join(tmpdir(), 'postern-test-'));
    const cluster = await startEmbeddedPostgres({ dataDir: folder, fsync: false });
    globalThis.stopTestCluster = async (keep) => {
      await cluster.stop();
      if (keep)
        process.stdout.write(`\nThe cluster with the databases of failed tests is kept in ${folder}\n`);
      else {
        await rm(folder, { recursive: true, force: true });
        await rm(cluster.folder, { recursive: true, force: true });
      }
    };
    server = cluster.url;
  }
  const template = `postern_template_${process.pid}`;
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  await client.query(`CREATE DATABASE ${template}`);
  await client.end();
  const url = new URL(server);
  url.pathname = `/${template}`;
  await migrate(url.href);
  process.env.POSTERN_TEST_SERVER = server;
  process.env.POSTERN_TEST_TEMPLATE = template;
}
