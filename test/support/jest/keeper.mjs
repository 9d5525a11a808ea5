// A process of its own that holds what a run needs beside Jest: the folder in memory and the Postgres (or its templates in
// that of TEST_DATABASE_URL). It ends them when the run ends, in whatever way: the channel to Jest closes then.
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../../.test-build/src/embedded-postgres/embedded-postgres.js';
import {
  createTemplate,
  createTemplateWithDays,
  TEMPLATE,
  tuneForTests,
} from '../../../.test-build/src/testing/template.js';
import { makeMemoryFolder } from './memory-folder.mjs';

// Those of a terminal reach the whole group, but Jest decides when the run is over.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
/** @type {Promise<{ isOver: boolean }>} whether the run came to its end */
const ended = new Promise((resolve) => {
  process.once('message', () => resolve({ isOver: true }));
  process.once('disconnect', () => resolve({ isOver: false }));
});

const template = `postern_template_${process.pid}`;
const disk = tmpdir();
// `npm run test:faults` is about the disk.
const memory = process.env.POSTERN_TEST_FULL === '1' ? null : await makeMemoryFolder();
if (memory !== null) process.env.TMPDIR = memory;
const cluster = process.env.TEST_DATABASE_URL ? null : await startCluster();
const server = cluster?.url ?? process.env.TEST_DATABASE_URL;
try {
  await createTemplate(server, template);
  await createTemplateWithDays(server, `${template}_days`, template);
  if (cluster !== null) {
    await tuneForTests(server);
    // What startGateway() of postern/testing copies.
    await createTemplateWithDays(server, TEMPLATE, `${template}_days`);
  }
  if (process.connected) process.send({ server, template, memory });
  const { isOver } = await ended;
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  for (const name of [template, `${template}_days`])
    await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  const left = await client.query(`SELECT 1 FROM pg_database WHERE datname LIKE 'postern_test_%'`);
  await client.end();
  if (isOver && left.rows.length > 0) await keepCluster();
} finally {
  await cluster?.remove();
  if (memory !== null) await rm(memory, { recursive: true, force: true });
  if (process.connected) process.disconnect();
}

async function startCluster() {
  const folder = await mkdtemp(join(tmpdir(), 'postern-jest-cluster-'));
  const started = await startEmbeddedPostgres({ dataDir: folder, fsync: false });
  return {
    url: started.url,
    folder,
    stop: () => started.stop(),
    remove: async () => {
      await started.stop();
      for (const each of [folder, started.folder]) await rm(each, { recursive: true, force: true });
    },
  };
}

async function keepCluster() {
  if (cluster === null) return;
  await cluster.stop();
  const kept = await mkdtemp(join(disk, 'postern-jest-cluster-'));
  execFileSync('cp', ['-a', `${cluster.folder}/.`, kept]);
  process.stdout.write(`\nThe cluster with the databases of failed tests is kept in ${kept}\n`);
}
