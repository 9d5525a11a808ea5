import pg from 'pg';
import { patience } from '../platform/patience.js';

/** Seconds and probes after which Postgres ends the session of a peer that has vanished: as KEEP_ALIVE does here. */
const KEEP_ALIVE_IDLE_S = 10;
const KEEP_ALIVE_INTERVAL_S = 1;
const KEEP_ALIVE_PROBES = 10;
/** The same for a peer that does not take what Postgres sends. */
const UNSENT_MS = 30_000;
/** A transaction that waits this long for its process ends, with its locks: the process is frozen or cut off. */
const IDLE_IN_TRANSACTION_MS = 10_000;
const SET_TIMEOUT = patience('the settings of a session', 5_000);

/**
 * Set by a statement, because poolers reject or ignore startup parameters. $1: statement_timeout, null for that of the
 * server.
 *
 * - `jit`: statements over many partitions exceed its cost limit; compiling takes seconds, executing milliseconds.
 * - `synchronous_commit`: claims, revocations and rows that were acknowledged must survive a crash of the server.
 */
const SET_SESSION = `
  SELECT set_config(name, value, false) FROM (VALUES
    ('jit', 'off'),
    ('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END),
    ('statement_timeout', COALESCE($1, current_setting('statement_timeout'))),
    ('idle_in_transaction_session_timeout', '${IDLE_IN_TRANSACTION_MS}'),
    ('tcp_keepalives_idle', '${KEEP_ALIVE_IDLE_S}'),
    ('tcp_keepalives_interval', '${KEEP_ALIVE_INTERVAL_S}'),
    ('tcp_keepalives_count', '${KEEP_ALIVE_PROBES}'),
    ('tcp_user_timeout', '${UNSENT_MS}')
  ) AS setting (name, value)`;

/** A connection through a pooler, whose sessions belong to nobody: nothing is set in them. */
export class PooledClient extends pg.Client {
  constructor(config: pg.ClientConfig = {}) {
    super({ ...config, statement_timeout: undefined });
    // Without a listener, a broken connection ends the process. A pool removes its own from a connection that it hands
    // out. No error is lost: the current or the next query fails.
    this.on('error', () => {});
  }
}

/** A session of the gateway's own: connect() also sets what all of them run with. */
export class GatewayClient extends PooledClient {
  private readonly statementTimeoutMs: number | false | undefined;

  constructor(config: pg.ClientConfig = {}) {
    super(config);
    this.statementTimeoutMs = config.statement_timeout;
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: ((error: Error) => void) | ((error: null, client: pg.Client) => void)): void;
  override connect(callback?: (...result: never[]) => void): Promise<pg.Client> | void {
    const connected = this.begin();
    if (callback === undefined) return connected;
    const done = callback as (error: Error | null, client?: pg.Client) => void;
    connected.then((client) => done(null, client), done);
  }

  private async begin(): Promise<pg.Client> {
    await super.connect();
    try {
      const query: pg.QueryConfig & Pick<pg.ClientConfig, 'query_timeout'> = {
        text: SET_SESSION,
        values: [this.statementTimeoutMs ? String(this.statementTimeoutMs) : null],
        query_timeout: SET_TIMEOUT.ms,
      };
      await this.query(query);
      return this;
    } catch (error) {
      this.end().catch(() => {});
      throw error;
    }
  }
}
