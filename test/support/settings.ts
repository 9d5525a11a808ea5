import { randomBytes } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PosternOptions } from '../../src/config/env.js';
import type { TestDatabase } from './database.js';
import { ADMIN_TOKEN } from './gateway.js';

/**
 * Settings of one process, for `PosternModule.forRoot()` in Nest's own test harness.
 *
 * @param options over the defaults of a test
 */
export async function testOptions(
  database: TestDatabase,
  options: PosternOptions = {},
): Promise<PosternOptions & { dataDir: string }> {
  return {
    nodeEnv: 'test',
    port: 0,
    databaseUrl: database.url,
    dataDir: await mkdtemp(join(tmpdir(), 'postern-data-')),
    adminToken: ADMIN_TOKEN,
    masterKey: randomBytes(32).toString('base64'),
    logLevel: 'fatal',
    shutdownGraceMs: 1_000,
    ...options,
  };
}
