import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** What a relay does to the connections of one application: nothing, break them, or fall silent on them. */
export type Trouble = 'none' | 'cut' | 'frozen';

interface Pair {
  application: string;
  near: Socket;
  far: Socket;
}

/**
 * Stands between a process and Postgres. It reads `application_name` from the startup message, so that the request
 * log's own connection can be in trouble while key look-ups go through.
 */
export class PostgresRelay {
  private readonly pairs = new Set<Pair>();
  private readonly troubles = new Map<string, Trouble>();

  private constructor(
    private readonly target: URL,
    private readonly server: Server,
  ) {
    server.on('connection', (near) => this.admit(near));
  }

  static async to(url: string): Promise<PostgresRelay> {
    const server = createServer({ noDelay: true });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new PostgresRelay(new URL(url), server);
  }

  /** The target's URL by way of this relay. */
  get url(): string {
    const url = new URL(this.target);
    url.host = `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return url.href;
  }

  /** @param application its `application_name`, or `*` for all that were not set by name */
  set(application: string, trouble: Trouble): void {
    this.troubles.set(application, trouble);
    for (const pair of this.pairs) this.apply(pair);
  }

  /** All applications, also those that were set by name. */
  setAll(trouble: Trouble): void {
    this.troubles.clear();
    this.set('*', trouble);
  }

  async close(): Promise<void> {
    for (const { near, far } of this.pairs) {
      near.destroy();
      far.destroy();
    }
    await new Promise((resolve) => this.server.close(resolve));
  }

  private admit(near: Socket): void {
    near.on('error', () => {});
    near.once('data', (startup) => {
      near.pause();
      const words = startup.toString('latin1', 8).split('\0');
      const application = words[words.indexOf('application_name') + 1] ?? '';
      const far = connect(Number(this.target.port || 5432), this.target.hostname);
      const pair = { application, near, far };
      this.pairs.add(pair);
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        socket.on('error', () => {});
        socket.on('close', () => {
          this.pairs.delete(pair);
          other.destroy();
        });
        socket.on('data', (bytes) => other.write(bytes));
      }
      far.write(startup);
      near.resume();
      this.apply(pair);
    });
  }

  private apply({ application, near, far }: Pair): void {
    const trouble = this.troubles.get(application) ?? this.troubles.get('*') ?? 'none';
    if (trouble === 'cut') {
      near.destroy();
    } else if (trouble === 'frozen') {
      near.pause();
      far.pause();
    } else {
      near.resume();
      far.resume();
    }
  }
}
