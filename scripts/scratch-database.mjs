// A database that holds what the migrations make, and nothing else.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './prepare.mjs';

/**
 * Runs `work` with the URL of a new database that every migration of dist/ has run on, and removes the database.
 *
 * It is on the Postgres of TEST_DATABASE_URL, else on an embedded one of its own.
 */
export async function withScratchDatabase(work) {
  const load = (path) => import(pathToFileURL(join(root, 'dist', 'src', path)).href);
  const { migrate } = await load('database/migrate.js');
  const { default: pg } = await import('pg');
  const server = await startServer(load);
  const name = `postern_scratch_${process.pid}`;
  const client = new pg.Client({ connectionString: server.url });
  try {
    await client.connect();
    await client.query(`CREATE DATABASE ${name}`);
    try {
      const url = new URL(server.url);
      url.pathname = `/${name}`;
      await migrate(url.href);
      return await work(url.href);
    } finally {
      await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
    }
  } finally {
    await client.end();
    await server.stop();
  }
}

async function startServer(load) {
  const given = process.env.TEST_DATABASE_URL;
  if (given) return { url: given, stop: () => Promise.resolve() };
  const { startEmbeddedPostgres } = await load('embedded-postgres/embedded-postgres.js');
  const folder = await mkdtemp(join(tmpdir(), 'postern-scratch-'));
  const server = await startEmbeddedPostgres({ dataDir: folder, fsync: false });
  return {
    url: server.url,
    stop: async () => {
      await server.stop();
      for (const each of [server.folder, folder]) await rm(each, { recursive: true, force: true });
    },
  };
}
