import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A statement that was executed. */
export interface Executed {
  application: string;
  text: string;
}

/** Stands between a process and Postgres, and notes which statements are executed on which connection. */
export class StatementRelay {
  readonly executed: Executed[] = [];
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly target: URL,
    private readonly server: Server,
  ) {
    server.on('connection', (near) => this.pass(near));
  }

  static async to(url: string): Promise<StatementRelay> {
    const server = createServer({ noDelay: true });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new StatementRelay(new URL(url), server);
  }

  /** The target's URL by way of this relay. */
  get url(): string {
    const url = new URL(this.target);
    url.host = `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return url.href;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private pass(near: Socket): void {
    const far = connect(Number(this.target.port || 5432), this.target.hostname);
    const read = this.reader();
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.sockets.delete(socket);
        other.destroy();
      });
      socket.on('data', (bytes) => {
        if (socket === near) read(bytes);
        other.write(bytes);
      });
    }
  }

  /** Reads messages of the frontend (PostgreSQL documentation, 54.7). */
  private reader(): (bytes: Buffer) => void {
    let waiting = Buffer.alloc(0);
    let application: string | null = null;
    const texts = new Map<string, string>();
    const portals = new Map<string, string>();
    const execute = (text: string) => this.executed.push({ application: application!, text });
    const onMessage = (type: string, body: Buffer) => {
      const words = body.toString('utf8').split('\0');
      if (type === 'Q') execute(words[0]!);
      else if (type === 'P') texts.set(words[0]!, words[1]!);
      else if (type === 'B') portals.set(words[0]!, texts.get(words[1]!)!);
      else if (type === 'E') execute(portals.get(words[0]!)!);
    };
    return (bytes) => {
      waiting = Buffer.concat([waiting, bytes]);
      for (;;) {
        // The startup message has no type.
        const start = application === null ? 0 : 1;
        if (waiting.length < start + 4) return;
        const end = start + waiting.readInt32BE(start);
        if (waiting.length < end) return;
        const body = waiting.subarray(start + 4, end);
        if (application === null) {
          const words = body.toString('latin1', 4).split('\0');
          application = words[words.indexOf('application_name') + 1] ?? '';
        } else onMessage(String.fromCharCode(waiting[0]!), body);
        waiting = waiting.subarray(end);
      }
    };
  }
}
