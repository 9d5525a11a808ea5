import { connect, createServer, type Server, type Socket } from 'node:net';
import { unusedPort } from './unused-port.js';

/** The address of an unavailable Postgres: nobody listens there until open(), then it leads to a real one. */
export class TcpForwarder {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private target: URL,
    private readonly port: number,
    private readonly readerOf: (() => (bytes: Buffer) => void) | undefined,
  ) {
    this.server = createServer((socket) => this.pass(socket));
  }

  /**
   * @param url where it will lead once it is open
   * @param readerOf makes, for each connection, what reads the bytes that its client sends
   */
  static async to(url: string, readerOf?: () => (bytes: Buffer) => void): Promise<TcpForwarder> {
    return new TcpForwarder(new URL(url), await unusedPort(), readerOf);
  }

  /** The target's URL by way of this port. */
  get url(): string {
    const url = new URL(this.target);
    url.host = `127.0.0.1:${this.port}`;
    return url.href;
  }

  /** New connections lead to another server. */
  lead(url: string): void {
    this.target = new URL(url);
  }

  /** From now on connections are accepted. */
  async open(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.server.removeAllListeners('error');
      this.server.once('error', reject).listen(this.port, '127.0.0.1', resolve);
    });
  }

  /** Cuts every connection and accepts no more, like a server that stops. */
  async close(): Promise<void> {
    await new Promise((resolve) => {
      this.server.close(resolve);
      for (const socket of this.sockets) socket.destroy();
    });
  }

  private pass(near: Socket): void {
    const far = connect(Number(this.target.port || 5432), this.target.hostname);
    if (this.readerOf !== undefined) near.on('data', this.readerOf());
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
      socket.pipe(other);
    }
  }
}
