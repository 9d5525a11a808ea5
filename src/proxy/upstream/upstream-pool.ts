import { Client, type Dispatcher } from 'undici';
import type { ConnectionLimit } from './connection-limit.js';
import type { UpstreamConnector } from './upstream-connector.js';

/** A call for which a connection is found. */
export interface PooledCall extends Dispatcher.DispatchHandler {
  /** Set to the connection that it gets, made or being made. To be aborted at most until the response has ended. */
  connection: { abort(): void } | null;
}

/**
 * The connections to one origin, as many as there are calls at the same time. undici's own Pool looks for a free one among
 * all of them, and keeps what it has made for ever: beside a thousand open streams the search alone takes a third of a
 * call's time on Node 20.
 */
export class UpstreamPool {
  private readonly connections = new Set<Connection>();
  /** Those without a call; the one that was used last is used next, so that the others may close. */
  private readonly free: Connection[] = [];
  private readonly origin: URL;

  /**
   * @param limit shared by all pools
   * @param beforeOpen called before a connection is opened
   */
  constructor(
    origin: string,
    private readonly options: Client.Options,
    private readonly connector: UpstreamConnector,
    private readonly limit: ConnectionLimit,
    private readonly beforeOpen: () => void,
  ) {
    this.origin = new URL(origin);
  }

  /** Makes sure of a connection for a call. @returns false when the process has as many as it may have */
  reserve(): boolean {
    return this.limit.take();
  }

  /** Gives back what was reserved for a call that is not dispatched. */
  cancelReservation(): void {
    this.limit.release();
  }

  /** Sends a call, for which a connection is reserved, on one of its own. */
  dispatch(options: Dispatcher.DispatchOptions, call: PooledCall): void {
    const connection = this.free.pop() ?? this.open();
    connection.busy = true;
    call.connection = connection;
    if (connection.dispatch(options, call)) this.putBack(connection);
  }

  /** Connections, with a call or without. */
  get size(): number {
    return this.connections.size;
  }

  /** Connections made, those of them without a call, and calls that wait for theirs to be made. */
  get counts(): { connected: number; idle: number; waiting: number } {
    let connected = 0;
    let waiting = 0;
    for (const { stats } of this.connections) {
      if (stats.connected) connected++;
      waiting += stats.pending;
    }
    return { connected, idle: this.free.length, waiting };
  }

  /** Closes the connection that has been without a call for longest. @returns false when each has one */
  closeIdle(): boolean {
    const oldest = this.free[0];
    oldest?.abort();
    return oldest !== undefined;
  }

  /** Breaks every connection, and with it what is still under way on one. */
  async destroy(): Promise<void> {
    await Promise.all([...this.connections].map((connection) => connection.destroy()));
  }

  /** Breaks a connection, and with it the call it has. */
  abort(connection: Connection): void {
    if (connection.busy) {
      connection.busy = false;
      this.limit.release();
    }
    this.forget(connection);
    connection.attempt.cancel?.();
    void connection.destroy();
  }

  private open(): Connection {
    this.beforeOpen();
    const connection = new Connection(this, this.origin, this.options, this.connector);
    this.connections.add(connection);
    connection.on('connect', () => (connection.lost = false));
    connection.on('connectionError', () => (connection.lost = true));
    connection.on('disconnect', () => {
      connection.lost = true;
      if (!connection.busy) this.forget(connection);
    });
    connection.on('drain', () => this.putBack(connection));
    return connection;
  }

  private putBack(connection: Connection): void {
    if (!connection.busy) return;
    connection.busy = false;
    this.limit.release();
    // It would connect again for its next call; there is no reason to keep it for that.
    if (connection.lost) this.forget(connection);
    else this.free.push(connection);
  }

  private forget(connection: Connection): void {
    this.connections.delete(connection);
    const index = this.free.indexOf(connection);
    if (index !== -1) this.free.splice(index, 1);
  }
}

/**
 * One connection of undici's that can be aborted at any time. undici itself aborts a request only once it has a
 * connection, so that clients who leave would pile up attempts to reach a provider that does not accept; and after an
 * abort it connects again before it drops the request. A connection has at most one call, since pipelining is 1.
 */
class Connection extends Client {
  readonly attempt: { cancel: (() => void) | null };
  /** Has a call. */
  busy = false;
  /** Was connected, or tried to, and is not. */
  lost = false;

  constructor(
    private readonly pool: UpstreamPool,
    origin: URL,
    options: Client.Options,
    connector: UpstreamConnector,
  ) {
    const attempt: Connection['attempt'] = { cancel: null };
    super(origin, {
      ...options,
      connect: (target, callback) => {
        attempt.cancel = connector(target, callback);
      },
    });
    this.attempt = attempt;
  }

  abort(): void {
    this.pool.abort(this);
  }
}
