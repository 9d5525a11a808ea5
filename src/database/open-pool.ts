import type { Logger } from '@nestjs/common';
import pg from 'pg';
import { clientOptions, type Purpose } from './data-source-options.js';
import { describeError } from '../errors/describe-error.js';
import { SteadyClient } from './steady-client.js';

/**
 * A pool apart from the one for look-ups: what goes through it must not keep a key waiting.
 *
 * @param logger is told of a connection that breaks while it lies idle; the next query opens a new one
 * @param session settings of its connections
 */
export function openPool(url: string, purpose: Purpose, logger: Logger, session?: pg.ClientConfig): pg.Pool {
  const pool = new pg.Pool({
    ...clientOptions(url, purpose),
    ...session,
    Client: SteadyClient,
    max: purpose.poolSize,
    // A command-line process ends when its work is done, not when its idle connections do.
    allowExitOnIdle: true,
  });
  pool.on('error', (error) => {
    if (!pool.ending)
      logger.warn(`An idle connection of ${purpose.applicationName} broke: ${describeError(error)}`);
  });
  return pool;
}
