import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeError } from '../errors/describe-error.js';
import { createTemplate, createTemplateWithDays, TEMPLATE, tuneForTests } from './template.js';

/** What the process that started this one gets. */
export type KeeperMessage = { url: string } | { error: string };

/**
 * A process that runs a Postgres until the one that started it ends, in whatever way: no test runner lets a file run
 * something at the end of a worker for certain.
 */
async function keep(): Promise<void> {
  const disconnected = new Promise((resolve) => process.once('disconnect', resolve));
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-test-postgres-'));
  let server: { stop(): Promise<void>; folder: string } | null = null;
  try {
    const { startEmbeddedPostgres } = await import('../embedded-postgres/embedded-postgres.js');
    const started = await startEmbeddedPostgres({ dataDir, fsync: false });
    server = started;
    await tuneForTests(started.url);
    const withoutDays = `${TEMPLATE}_empty_log`;
    await createTemplate(started.url, withoutDays);
    await createTemplateWithDays(started.url, TEMPLATE, withoutDays);
    send({ url: started.url });
    if (process.connected) await disconnected;
  } catch (error) {
    send({ error: describeError(error) });
  } finally {
    await server?.stop();
    for (const folder of [dataDir, server?.folder]) {
      if (folder !== undefined) await rm(folder, { recursive: true, force: true });
    }
    if (process.connected) process.disconnect();
  }
}

function send(message: KeeperMessage): void {
  if (process.connected) process.send!(message);
}

// Of the terminal, when people stop the tests: the process that runs them ends, and this one after it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

await keep();
