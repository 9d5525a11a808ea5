import { Socket } from 'node:net';
import type pg from 'pg';
import { clientOptions, type Purpose } from './data-source-options.js';
import { GatewayClient } from './gateway-client.js';
import { CLOSE_TIMEOUT, withTimeout } from '../platform/patience.js';

/** A service's own connection to Postgres: opened when needed, closed on the first error. */
export class RenewedConnection {
  private client: pg.Client | null = null;
  private socket: Socket | null = null;
  private ended = false;

  /** @param purpose a connection that does not respond within its `queryTimeout` is replaced */
  constructor(
    private readonly url: string,
    private readonly purpose: Omit<Purpose, 'poolSize'>,
  ) {}

  async open(): Promise<pg.Client> {
    if (this.client !== null) return this.client;
    if (this.ended) throw new Error('this process is stopping');
    // Created here, so that close() can destroy a socket that hangs, also while it connects.
    const socket = new Socket();
    this.socket = socket;
    const client = new GatewayClient({
      ...clientOptions(this.url, this.purpose),
      stream: () => socket,
    });
    const gone = () => {
      if (this.client === client) this.client = null;
      socket.destroy();
    };
    client.on('error', gone);
    client.on('end', gone);
    try {
      await client.connect();
    } catch (error) {
      socket.destroy();
      throw error;
    }
    this.client = client;
    return client;
  }

  /** Closes the connection; open() then throws. */
  end(): Promise<void> {
    this.ended = true;
    return this.close();
  }

  /** Closes the connection, within a time limit; the next open() connects again. */
  async close(): Promise<void> {
    const { client, socket } = this;
    this.client = null;
    this.socket = null;
    if (client !== null) await withTimeout(CLOSE_TIMEOUT.ms, client.end());
    socket?.destroy();
  }
}
