import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { eventually } from './eventually.js';

/** What a proxy does with a request for a tunnel. */
export type Manner = (socket: Socket, head: string) => void;

/** An egress proxy that counts what it is asked for; by default it makes the tunnel, to this machine whatever the name. */
export class EgressProxy {
  /** The head of each request, as its bytes came in. */
  readonly heads: string[] = [];
  readonly sockets: Socket[] = [];

  private constructor(
    private readonly server: Server,
    public manner: Manner,
  ) {
    server.on('connection', (socket) => {
      this.sockets.push(socket.on('error', () => {}));
      let bytes = '';
      const read = (chunk: Buffer) => {
        bytes += chunk.toString('latin1');
        if (!bytes.includes('\r\n\r\n')) return;
        socket.off('data', read);
        this.heads.push(bytes);
        this.manner(socket, bytes);
      };
      socket.on('data', read);
    });
  }

  static async start(manner: Manner = tunnel): Promise<EgressProxy> {
    const server = createServer({ noDelay: true });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new EgressProxy(server, manner);
  }

  get host(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Waits until the gateway has closed every connection but those in use. */
  async left(atWork = 0): Promise<void> {
    await eventually(() => this.sockets.filter((socket) => !socket.destroyed).length <= atWork);
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

/** Makes the tunnel that was asked for. */
export const tunnel = (near: Socket, head: string, status = '200 Connection established'): void => {
  const port = Number(/^CONNECT \S+:(\d+) /.exec(head)![1]);
  const far = connect(port, '127.0.0.1', () => {
    near.write(`HTTP/1.1 ${status}\r\n\r\n`);
    near.pipe(far).pipe(near);
  });
  far.on('error', () => near.destroy());
  near.on('close', () => far.destroy());
};

/** Says this and waits. */
export const saying =
  (bytes: string): Manner =>
  (socket) =>
    void socket.resume().write(bytes);
