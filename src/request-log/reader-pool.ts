import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { InjectEnv } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { clientOptions } from '../database/data-source-options.js';
import { describeFault } from '../database/database-fault.js';
import { SteadyClient } from '../database/steady-client.js';

/** Questions that are answered at once. */
const ANSWERS = { connections: 2, timeoutMs: 30_000 };
/** Exports: one step of theirs, the first above all, may have to look through every day there is. */
const EXPORTS = { connections: 2, timeoutMs: 600_000 };
/** An export whose client takes nothing for so long is ended: it holds a snapshot and locks. */
const EXPORT_IDLE_MS = 900_000;

/** Connections for reading the request log, apart from others: a slow question must not keep key look-ups waiting. */
@Injectable()
export class ReaderPool implements OnApplicationShutdown {
  readonly answers: pg.Pool;
  readonly exports: pg.Pool;
  private readonly logger = new Logger('RequestLog');

  constructor(@InjectEnv() private readonly env: Settings) {
    this.answers = this.makePool('postern-reader', ANSWERS);
    this.exports = this.makePool('postern-export', EXPORTS, {
      idle_in_transaction_session_timeout: EXPORT_IDLE_MS,
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([this.answers.end(), this.exports.end()]);
  }

  private makePool(
    applicationName: string,
    { connections, timeoutMs }: { connections: number; timeoutMs: number },
    more: pg.PoolConfig = {},
  ): pg.Pool {
    const pool = new pg.Pool({
      ...clientOptions(this.env.databaseUrl, { applicationName, queryTimeoutMs: timeoutMs }),
      ...more,
      Client: SteadyClient,
      max: connections,
      // A command-line process ends when its work is done, not when its idle connections do.
      allowExitOnIdle: true,
    });
    // An idle connection that breaks would otherwise end the process; the next query opens a new one.
    pool.on('error', (error) => {
      if (!pool.ending) this.logger.warn(`A reading connection broke: ${describeFault(error)}`);
    });
    return pool;
  }
}
