import type { Logger } from '@nestjs/common';
import pg from 'pg';
import { clientOptions, type Purpose } from './data-source-options.js';
import { GatewayClient } from './gateway-client.js';
import { describeError } from '../errors/describe-error.js';

/**
 * Opens a pool separate from the one for key look-ups, so that its queries cannot delay them.
 *
 * @param logger logs a broken idle connection; the next query opens a new one
 */
export function openPool(url: string, purpose: Purpose, logger: Logger): pg.Pool {
  const pool = new pg.Pool({
    ...clientOptions(url, purpose),
    Client: GatewayClient,
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
