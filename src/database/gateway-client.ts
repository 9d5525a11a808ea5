import pg from 'pg';

/** Seconds and probes after which Postgres ends the session of a peer that has vanished: as KEEP_ALIVE does here. */
const KEEP_ALIVE_IDLE_S = 10;
const KEEP_ALIVE_INTERVAL_S = 1;
const KEEP_ALIVE_PROBES = 10;
/** The same for a peer that does not take what Postgres sends. */
const UNSENT_MS = 30_000;
/** A transaction that waits this long for its process ends, with its locks: the process is frozen or cut off. */
const IDLE_IN_TRANSACTION_MS = 10_000;
const SET_TIMEOUT_MS = 5_000;

/**
 * Set by a statement, because poolers ignore or reject startup parameters. The values are the same for all sessions: behind
 * a pooler in transaction mode, they reach whichever server connection is free.
 *
 * - `jit`: statements over many partitions exceed its cost limit; compiling takes seconds, executing milliseconds.
 * - `synchronous_commit`: claims, revocations and rows that were acknowledged must survive a crash of the server.
 */
const SET_SESSION = `
  SELECT set_config(name, value, false) FROM (VALUES
    ('jit', 'off'),
    ('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END),
    ('idle_in_transaction_session_timeout', '${IDLE_IN_TRANSACTION_MS}'),
    ('tcp_keepalives_idle', '${KEEP_ALIVE_IDLE_S}'),
    ('tcp_keepalives_interval', '${KEEP_ALIVE_INTERVAL_S}'),
    ('tcp_keepalives_count', '${KEEP_ALIVE_PROBES}'),
    ('tcp_user_timeout', '${UNSENT_MS}')
  ) AS setting (name, value)`;

/** Every session of the gateway: connect() also sets what all of them run with. */
export class GatewayClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    // Without a listener, a broken connection ends the process. A pool removes its own from a connection that it hands
    // out. No error is lost: the current or the next query fails.
    this.on('error', () => {});
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
        query_timeout: SET_TIMEOUT_MS,
      };
      await this.query(query);
      return this;
    } catch (error) {
      this.end().catch(() => {});
      throw error;
    }
  }
}
