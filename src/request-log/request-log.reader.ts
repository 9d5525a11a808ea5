import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { InjectEnv } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { clientOptions } from '../database/data-source-options.js';
import { describeFault } from '../database/database-fault.js';
import { isUuid, type Page, pageOf, type PageRequest } from '../database/page.js';
import { Fault } from '../fault.js';
import { after, conditionsOf, type RequestFilter, startedAtOf } from './request-query.js';
import { type RequestRow, requestView, type RequestView, SELECT_REQUESTS } from './request-view.js';

const CONNECTIONS = 2;
/** A filter without an index may have to read many days. */
const QUERY_TIMEOUT_MS = 30_000;

const FIND = `${SELECT_REQUESTS} WHERE started_at = $1 AND id = $2`;

/** Shows the request log, through a small pool of its own: a slow question must not keep key look-ups waiting. */
@Injectable()
export class RequestLogReader implements OnApplicationShutdown {
  private readonly logger = new Logger('RequestLog');
  private readonly pool: pg.Pool;

  constructor(@InjectEnv() env: Settings) {
    this.pool = new pg.Pool({
      ...clientOptions(env.databaseUrl, {
        applicationName: 'postern-reader',
        queryTimeoutMs: QUERY_TIMEOUT_MS,
      }),
      max: CONNECTIONS,
      // A command-line process ends when its work is done, not when its idle connections do.
      allowExitOnIdle: true,
    });
    // An idle connection that breaks would otherwise end the process; the next query opens a new one.
    this.pool.on('error', (error) => {
      if (!this.pool.ending) this.logger.warn(`A reading connection broke: ${describeFault(error)}`);
    });
  }

  /** Newest first. @throws Fault invalid for a foreign cursor */
  async list({ limit, cursor, ...filter }: RequestFilter & PageRequest): Promise<Page<RequestView>> {
    const conditions = after(conditionsOf(filter), cursor);
    const count = conditions.placeholder(limit + 1);
    const { rows } = await this.pool.query<RequestRow>(
      `${SELECT_REQUESTS} ${conditions.where} ORDER BY started_at DESC, id DESC LIMIT ${count}`,
      conditions.values,
    );
    return pageOf(rows, limit, requestView);
  }

  /** Reads one partition: the id says on which day the call began. @throws Fault not_found */
  async get(id: string): Promise<RequestView> {
    const { rows } = isUuid(id)
      ? await this.pool.query<RequestRow>(FIND, [startedAtOf(id), id])
      : { rows: [] };
    if (rows[0] === undefined) {
      throw Fault.of('not_found', 'id', 'no call in the log has this id; give its x-gateway-request-id');
    }
    return requestView(rows[0]);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
