import { Socket } from 'node:net';
import pg from 'pg';
import { clientOptions } from '../database/data-source-options.js';
import { GOODBYE_MS, withTimeout } from '../platform/with-timeout.js';

/** A batch takes some 20 ms; a connection that says nothing for this long is taken for dead. */
const QUERY_TIMEOUT_MS = 10_000;
/** A commit that a crash of the server may take back would be a lost row: the journal lets go of what was committed. */
const COMMITS_LAST = `SELECT set_config('synchronous_commit', 'on', false)
  WHERE current_setting('synchronous_commit') = 'off'`;

/** The log writer's own connection to Postgres: opened when needed, given up as soon as it shows a fault. */
export class LogConnection {
  private client: pg.Client | null = null;
  private socket: Socket | null = null;
  private ended = false;

  constructor(private readonly url: string) {}

  async open(): Promise<pg.Client> {
    if (this.client !== null) return this.client;
    if (this.ended) throw new Error('the log writer has stopped');
    // A socket of our own making, so that close() can end one that hangs, also while it connects.
    const socket = new Socket();
    this.socket = socket;
    const client = new pg.Client({
      ...clientOptions(this.url, { applicationName: 'postern-log', queryTimeoutMs: QUERY_TIMEOUT_MS }),
      stream: () => socket,
    });
    // Without a listener a server that goes away between batches would end the process.
    const gone = () => {
      if (this.client === client) this.client = null;
      socket.destroy();
    };
    client.on('error', gone);
    client.on('end', gone);
    try {
      await client.connect();
      await client.query(COMMITS_LAST);
    } catch (error) {
      socket.destroy();
      throw error;
    }
    this.client = client;
    return client;
  }

  /** Closes and opens no more. */
  end(): Promise<void> {
    this.ended = true;
    return this.close();
  }

  /** Says goodbye where somebody listens; the next open() connects anew. Bounded: a server that hangs says nothing. */
  async close(): Promise<void> {
    const { client, socket } = this;
    this.client = null;
    this.socket = null;
    if (client !== null) await withTimeout(GOODBYE_MS, client.end());
    socket?.destroy();
  }
}
