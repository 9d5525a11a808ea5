import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compileProduct, compileTests } from '../../../scripts/compile.mjs';
import { makeMemoryFolder } from './memory-folder.mjs';

/** What is tested (some tests start dist/), and one cluster for the run (or TEST_DATABASE_URL), with a migrated template that each test file clones. */
export default async function globalSetup({ testPathPatterns, testNamePattern }) {
  if (testPathPatterns.patterns.length > 0 || testNamePattern) process.env.POSTERN_TESTS_CHOSEN = '1';
  if (process.env.POSTERN_TEST_FULL === '1') {
    // The workers have it from here.
    process.env.POSTERN_FUZZ_SEED ??= String(randomInt(2 ** 31));
    process.stdout.write(
      `\nPOSTERN_FUZZ_SEED=${process.env.POSTERN_FUZZ_SEED} repeats the random cases of this run.\n`,
    );
  }
  await Promise.all([compileTests(), compileProduct()]);
  const [{ startEmbeddedPostgres }, { createTemplate, createTemplateWithDays, TEMPLATE, tuneForTests }] =
    await Promise.all([
      import('../../../.test-build/src/embedded-postgres/embedded-postgres.js'),
      import('../../../.test-build/src/testing/template.js'),
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
  await createTemplate(server, template);
  await createTemplateWithDays(server, `${template}_days`, template);
  if (globalThis.stopTestCluster) {
    await tuneForTests(server);
    // What startGateway() of postern/testing copies.
    await createTemplateWithDays(server, TEMPLATE, `${template}_days`);
  }
  process.env.TEST_DATABASE_URL = server;
  process.env.POSTERN_TEST_SERVER = server;
  process.env.POSTERN_TEST_TEMPLATE = template;
}
