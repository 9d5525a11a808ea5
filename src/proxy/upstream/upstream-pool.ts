import { Client, type Dispatcher } from 'undici';
import type { ConnectionLimit } from './connection-limit.js';
import type { UpstreamConnector } from './upstream-connector.js';

/** A call that the pool gives a connection. */
export interface PooledCall extends Dispatcher.DispatchHandler {
  /** Set to its connection, established or not yet. It may be aborted only until the response has ended. */
  connection: { abort(): void; handOver(): void } | null;
}

/**
 * The connections to one origin, one for each concurrent call. undici's own Pool searches all its connections for a free one
 * and never removes any: with a thousand open streams the search alone takes a third of a call's time on Node 20.
 */
export class UpstreamPool {
  private readonly connections = new Set<Connection>();
  /** Connections without a call. The last used is used next, so that the others can close. */
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

  /** Reserves a connection for a call. @returns false if the connection limit is reached */
  reserve(): boolean {
    return this.limit.take();
  }

  /** Releases the reservation of a call that is not dispatched. */
  cancelReservation(): void {
    this.limit.release();
  }

  /** Sends a call that has a reservation, on a connection of its own. */
  dispatch(options: Dispatcher.DispatchOptions, call: PooledCall): void {
    const connection = this.free.pop() ?? this.open();
    connection.busy = true;
    call.connection = connection;
    if (connection.dispatch(options, call)) this.putBack(connection);
  }

  /** Number of connections, with or without a call. */
  get size(): number {
    return this.connections.size;
  }

  /** Established connections, those of them without a call, and calls waiting for a connection. */
  get counts(): { connected: number; idle: number; waiting: number } {
    let connected = 0;
    let waiting = 0;
    for (const { stats } of this.connections) {
      if (stats.connected) connected++;
      waiting += stats.pending;
    }
    return { connected, idle: this.free.length, waiting };
  }

  /** Closes the connection that has been idle longest. @returns false if none is idle */
  closeIdle(): boolean {
    const oldest = this.free[0];
    oldest?.abort();
    return oldest !== undefined;
  }

  /** Destroys every connection and fails the calls on them. */
  async destroy(): Promise<void> {
    await Promise.all([...this.connections].map((connection) => connection.destroy()));
  }

  /** Destroys a connection and fails its call. */
  abort(connection: Connection): void {
    if (connection.busy) {
      connection.busy = false;
      this.limit.release();
    }
    this.forget(connection);
    connection.attempt.cancel?.();
    void connection.destroy();
  }

  /** Forgets a connection whose socket now belongs to its call, which ends with cancelReservation(). */
  handOver(connection: Connection): void {
    connection.busy = false;
    this.forget(connection);
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
    // It would have to connect again for its next call, so it is not kept.
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
 * An undici connection that can be aborted at any time. undici aborts a request only once it is connected, so that clients
 * that disconnect would pile up connection attempts to a provider that does not accept; and after an abort it connects
 * again before it drops the request. A connection has at most one call, because pipelining is 1.
 */
class Connection extends Client {
  readonly attempt: { cancel: (() => void) | null };
  /** Has a call. */
  busy = false;
  /** True after the connection was closed or could not be established. */
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

  handOver(): void {
    this.pool.handOver(this);
  }
}
