import { fork } from 'node:child_process';
import { channel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { processEnv } from '../config/env-source.js';
import type { KeeperMessage } from './postgres-keeper.js';

/** A Postgres for tests. */
export interface TestPostgres {
  /** Set TEST_DATABASE_URL to it, and every process of the run uses this one. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts an embedded Postgres, for the global setup of a test runner: without it each process of the run starts its own.
 * It ends with this process if it is not stopped before.
 *
 * @throws Error if it cannot be started
 */
export async function startPostgres(): Promise<TestPostgres> {
  const file = fileURLToPath(new URL('./postgres-keeper.js', import.meta.url));
  // Detached: Ctrl-C in a terminal is for the runner.
  const keeper = fork(file, { execArgv: [], stdio: 'ignore', detached: true });
  const message = await new Promise<KeeperMessage>((resolve) => {
    keeper.once('message', (received) => resolve(received as KeeperMessage));
    keeper.once('error', ({ message: error }) => resolve({ error }));
    keeper.once('exit', () => resolve({ error: 'its process ended' }));
  });
  if ('error' in message)
    throw new Error(
      `no Postgres for tests: ${message.error}; or set TEST_DATABASE_URL to one whose user may create databases`,
    );
  // They hold no process that has ended otherwise.
  keeper.unref();
  keeper.channel!.unref();
  return {
    url: message.url,
    stop: async () => {
      if (!keeper.connected) return;
      keeper.ref();
      const ended = once(keeper, 'exit');
      keeper.disconnect();
      await ended;
    },
  };
}

interface Question {
  url?: Promise<string>;
}

/** Test runners give each file modules and globals of its own. A channel is known to the whole process. */
const ASKED = channel('postern.testing.postgres');

/** URL of the Postgres of TEST_DATABASE_URL, or else of an embedded one, which the first call in a process starts. */
export function postgresForTests(): Promise<string> {
  const given = processEnv().TEST_DATABASE_URL;
  if (given) return Promise.resolve(given);
  const question: Question = {};
  ASKED.publish(question);
  if (question.url !== undefined) return question.url;
  const url = startPostgres().then((server) => server.url);
  ASKED.subscribe((asked) => ((asked as Question).url = url));
  return url;
}
