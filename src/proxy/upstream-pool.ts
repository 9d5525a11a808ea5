import { Client, type Dispatcher } from 'undici';
import type { ConnectAttempt, UpstreamConnector } from './upstream-connector.js';

/** A call for which a connection is found. */
export interface PooledCall extends Dispatcher.DispatchHandler {
  /** Set to the making of the connection that it waits for. */
  attempt: ConnectAttempt | null;
  /** It is over. */
  readonly settled: boolean;
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

  constructor(
    origin: string,
    private readonly options: Client.Options,
    private readonly connector: UpstreamConnector,
  ) {
    this.origin = new URL(origin);
  }

  /** Sends a call on a connection of its own. */
  dispatch(options: Dispatcher.DispatchOptions, call: PooledCall): void {
    const connection = this.free.pop() ?? this.open();
    connection.busy = true;
    call.attempt = connection.attempt;
    const isFree = connection.dispatch(options, call);
    // One that undici refused before it was begun: no 'drain' is to come.
    if (isFree || (call.settled && connection.stats.size === 0)) this.putBack(connection);
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

  /** Breaks every connection, and with it what is still under way on one. */
  async destroy(): Promise<void> {
    await Promise.all([...this.connections].map((connection) => connection.destroy()));
  }

  private open(): Connection {
    const connection = new Connection(this.origin, this.options, this.connector);
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
 * One connection of undici's that can be given up while it is being made: undici itself aborts a request only once it
 * has a connection, so that callers who leave would pile up attempts to reach a provider that does not answer. A
 * connection being made has exactly one call waiting for it, since pipelining is 1.
 */
class Connection extends Client {
  readonly attempt: ConnectAttempt;
  /** Has a call. */
  busy = false;
  /** Was connected, or tried to, and is not. */
  lost = false;

  constructor(origin: URL, options: Client.Options, connector: UpstreamConnector) {
    const attempt: ConnectAttempt = { cancel: null };
    super(origin, {
      ...options,
      connect: (target, callback) => {
        attempt.cancel = connector(target, callback);
      },
    });
    this.attempt = attempt;
  }
}
