import type { Logger } from '@nestjs/common';
import pg from 'pg';
import { clientOptions, type Purpose } from './data-source-options.js';
import { GatewayClient, PooledClient } from './gateway-client.js';
import { directUrl, type Settings } from '../config/settings.js';
import { describeError } from '../errors/describe-error.js';

/**
 * Opens a pool for single statements and short transactions that keep nothing in their session: the one that may go
 * through a pooler in transaction mode. With DATABASE_DIRECT_URL, use no named statements, and set what a transaction
 * needs by SET LOCAL.
 */
export function openPooled(env: Settings, purpose: Purpose, logger: Logger): pg.Pool {
  if (directUrl(env) === env.databaseUrl) return openPool(env.databaseUrl, purpose, logger);
  return open(env.databaseUrl, purpose, logger, PooledClient);
}

/**
 * Opens a pool separate from the one for key look-ups, so that its queries cannot delay them.
 *
 * @param logger logs a broken idle connection; the next query opens a new one
 */
export function openPool(url: string, purpose: Purpose, logger: Logger): pg.Pool {
  return open(url, purpose, logger, GatewayClient);
}

function open(url: string, purpose: Purpose, logger: Logger, Client: typeof PooledClient): pg.Pool {
  const options = clientOptions(url, purpose);
  const pool = new pg.Pool({
    ...options,
    ...(purpose.wait === undefined
      ? { Client }
      : { Client: connectingAsWith(Client, options), connectionTimeoutMillis: purpose.wait.ms }),
    max: purpose.poolSize,
    // A CLI process ends when its work is done, not when its idle connections time out.
    allowExitOnIdle: true,
  });
  pool.on('error', (error) => {
    if (!pool.ending)
      logger.warn(`An idle connection of ${purpose.applicationName} broke: ${describeError(error)}`);
  });
  return pool;
}

/** `pg` has one timeout for connecting and for waiting until another query is done. */
function connectingAsWith(
  Client: typeof PooledClient,
  { connectionTimeoutMillis }: pg.ClientConfig,
): typeof PooledClient {
  return class extends Client {
    constructor(config: pg.ClientConfig = {}) {
      super({ ...config, connectionTimeoutMillis });
    }
  };
}
