import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { camelCase, type PosternOptions } from '../config/env.js';
import { ChangeFeed } from '../database/change-feed.js';
import { DatabaseService } from '../database/database.service.js';
import { type Gateway, type GatewayOptions, startGateway } from '../runtime/gateway.js';
import type { ImportedModule } from '../runtime/module-tree.js';
import { readEnv } from '../runtime/read-env.js';
import { eventually } from './eventually.js';
import type { TestDatabase } from './test-database.js';

const READY_WITHIN_MS = 60_000;
const TOLD_WITHIN_MS = 5_000;

/** What a gateway of a test is made of. */
export interface RunOptions extends Pick<GatewayOptions, 'make' | 'setup'> {
  root: ImportedModule;
  database: TestDatabase;
  /** They win over those of the root module. */
  settings?: PosternOptions;
  /** Its environment, whole. */
  variables?: Record<string, string>;
}

/** A gateway in this process, perhaps not ready yet. */
export interface RunningGateway {
  readonly gateway: Gateway;
  readonly dataDir: string;
  /** The first key, once there is one; before, it is empty. */
  readonly key: string;
  /** Also removes its DATA_DIR. */
  stop(): Promise<void>;
}

/**
 * Starts a gateway as `npm start` does, with a DATA_DIR of its own.
 *
 * @throws Error; nothing is left
 */
export async function runGateway({
  root,
  database,
  settings = {},
  variables = {},
  ...hooks
}: RunOptions): Promise<RunningGateway> {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-data-'));
  const remove = () => rm(dataDir, { recursive: true, force: true });
  const defaults = {
    nodeEnv: 'test',
    port: 0,
    databaseUrl: database.url,
    dataDir,
    adminToken: `test-${randomBytes(16).toString('hex')}`,
    logLevel: 'fatal',
    shutdownGraceMs: 1_000,
    ...(settings.providerUrl && settings.providerAuth !== 'client' && { providerKey: 'sk-test-provider' }),
  } satisfies PosternOptions;
  const given = new Set(Object.keys(variables).map(camelCase));
  const rest = Object.fromEntries(Object.entries(defaults).filter(([name]) => !given.has(name)));
  let key = '';
  try {
    const env = await readEnv(root, { ...rest, ...settings }, variables);
    const gateway = await startGateway(root, env, {
      ...hooks,
      report: () => {},
      onFirstKey: (first) => (key = first),
      onPermanentError: (error) => {
        throw error;
      },
    });
    return {
      gateway,
      dataDir,
      get key() {
        return key;
      },
      stop: async () => {
        await gateway.stop();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Waits until it has its database, and its first key. */
export async function untilReady(gateway: Gateway): Promise<void> {
  const database = gateway.app.get(DatabaseService);
  // The start waits for its first look at Postgres for seconds only, and on a busy machine that takes longer.
  await eventually(() => database.notReady === null, READY_WITHIN_MS, 'the gateway has no Postgres');
}

/**
 * Waits until a gateway was notified of every change so far: a late notification makes it look its keys up again, also
 * after a call has made one known. Not for long, because a test may have cut the connection.
 */
export async function changesApplied({ app }: Gateway, database: TestDatabase): Promise<void> {
  const feed = app.get(ChangeFeed);
  const counters = await database.query<{ name: string; value: string }>(
    'SELECT name, value FROM change_counter',
  );
  const areApplied = () => counters.every(({ name, value }) => feed.reflects(name, BigInt(value)));
  await eventually(areApplied, TOLD_WITHIN_MS).catch(() => {});
}
