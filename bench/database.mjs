// A Postgres for the run: the embedded server in a temporary folder, one database for each gateway.
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startEmbeddedPostgres } from '../dist/src/embedded-postgres/embedded-postgres.js';

const ROWS_MS = 30_000;

/** @param settings of the server, which may be such as need a restart */
export async function startPostgres(workplace, settings = {}) {
  const dataDir = await workplace.subfolder('postgres');
  let server = await startEmbeddedPostgres({ dataDir });
  for (const [name, value] of Object.entries(settings))
    await ask(server.url, `ALTER SYSTEM SET ${name} = '${value}'`);
  if (Object.keys(settings).length > 0) {
    await server.stop();
    server = await startEmbeddedPostgres({ dataDir });
  }
  workplace.onClose(async () => {
    await server.stop();
    // As root it may live outside of the workplace.
    await rm(server.folder, { recursive: true, force: true });
  });
  const pid = Number(
    (await readFile(join(server.folder, 'cluster', 'postmaster.pid'), 'utf8')).split('\n')[0],
  );
  const { server_version: version } = (await ask(server.url, 'SHOW server_version'))[0];
  let made = 0;
  return {
    /** The postmaster: root of the server's process tree. */
    pid,
    version,
    /** What the server has logged. */
    log: () => readFile(join(server.folder, 'server.log'), 'utf8'),
    async createDatabase() {
      const name = `bench_${++made}`;
      await ask(server.url, `CREATE DATABASE ${name}`);
      const url = new URL(server.url);
      url.pathname = `/${name}`;
      return new Database(url.href);
    },
  };
}

export class Database {
  constructor(url) {
    this.url = url;
  }

  /** @returns the rows of one statement */
  ask(text, values) {
    return ask(this.url, text, values);
  }

  /** Rows of calls in Postgres so far. */
  async rows() {
    return (await ask(this.url, 'SELECT count(*)::int AS count FROM request_log'))[0].count;
  }

  /**
   * Waits until there are as many rows as calls, or until they have had time enough; then their number, which the caller
   * compares: more is as wrong as less.
   */
  async settledRows(calls) {
    for (const deadline = performance.now() + ROWS_MS; ; await sleep(50)) {
      const rows = await this.rows();
      if (rows >= calls || performance.now() > deadline) {
        // One too many would come a moment later.
        await sleep(300);
        return this.rows();
      }
    }
  }

  /** When Postgres got the latest row; ms since the epoch. */
  async lastRecorded() {
    const text = 'SELECT extract(epoch FROM max(recorded_at))::float8 * 1000 AS at FROM request_log';
    return (await ask(this.url, text))[0].at;
  }

  /** Rows by how their call ended. */
  async outcomes() {
    const found = await ask(
      this.url,
      'SELECT outcome, count(*)::int AS count FROM request_log GROUP BY 1 ORDER BY 1',
    );
    return Object.fromEntries(found.map(({ outcome, count }) => [outcome, count]));
  }
}

async function ask(url, text, values = []) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}
