import { randomBytes } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadEnv } from '../../src/config/env.js';
import type { Settings } from '../../src/config/settings.js';
import type { TestDatabase } from './database.js';
import { ADMIN_TOKEN } from './gateway.js';

/**
 * Settings of one process, for `AppModule.forSettings()` in Nest's own test harness.
 *
 * @param variables environment variables over the defaults of a test
 */
export async function testSettings(
  database: TestDatabase,
  variables: Record<string, string> = {},
): Promise<Settings> {
  const env = loadEnv({
    NODE_ENV: 'test',
    PORT: '0',
    DATABASE_URL: database.url,
    DATA_DIR: await mkdtemp(join(tmpdir(), 'postern-data-')),
    ADMIN_TOKEN,
    MASTER_KEY: randomBytes(32).toString('base64'),
    LOG_LEVEL: 'fatal',
    SHUTDOWN_GRACE_MS: '1000',
    ...variables,
  });
  return {
    ...env,
    databaseUrl: env.databaseUrl!,
    adminToken: env.adminToken!,
    masterKey: env.masterKey!,
    worker: 1,
    workers: 1,
  };
}
