import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterFile } from './after-file.js';
import { RawReader } from './raw-reader.js';
import { unusedPort } from './unused-port.js';

/** One request as its bytes came in. */
export interface ReceivedRequest {
  /** Request line and headers, latin-1, without the empty line. */
  head: string;
  /** Flat raw headers in order and case. */
  headers: [name: string, value: string][];
  /** Settles when the body has arrived whole: decoded, and with its framing. */
  body: Promise<{ bytes: Buffer; framed: Buffer }>;
  socket: Socket;
  /** How many bytes of body have arrived so far. */
  received(): number;
  /** Settles when the gateway closes the connection. */
  closed: Promise<void>;
}

export type Script = (request: ReceivedRequest) => void | Promise<void>;

/** Those that nobody has stopped yet. */
const running = new Set<RawProvider>();

afterFile(async () => {
  await Promise.all([...running].map((provider) => provider.stop()));
});

/** A provider that speaks bytes: a script writes what it likes for each request, as soon as its head is there. */
export class RawProvider {
  readonly requests: ReceivedRequest[] = [];
  connections = 0;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    public script: Script,
  ) {
    server.on('connection', (socket) => {
      this.connections++;
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
      socket.on('error', () => {});
      void this.serve(socket);
    });
  }

  static async start(script: Script): Promise<RawProvider> {
    const server = createServer({ noDelay: true });
    const provider = new RawProvider(server, script);
    // Nothing listens there once it has stopped.
    const port = await unusedPort();
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    running.add(provider);
    return provider;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    running.delete(this);
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async serve(socket: Socket): Promise<void> {
    const reader = new RawReader(socket);
    const closed = new Promise<void>((resolve) => socket.once('close', resolve));
    for (;;) {
      const head = await reader.head().catch(() => null);
      if (head === null) return;
      const headers = head
        .split('\r\n')
        .slice(1)
        .map((line): [string, string] => [
          line.slice(0, line.indexOf(':')),
          line.slice(line.indexOf(':') + 1).trim(),
        ]);
      const body = reader.body(headers);
      body.catch(() => {});
      const request = { head, headers, body, socket, closed, received: () => reader.bodyReceived };
      this.requests.push(request);
      await this.script(request);
      await body.catch(() => {});
    }
  }
}

/** An HTTP/1.1 answer with a Content-Length. */
export function answer(status: string, headers: string[], body: string | Buffer = ''): Buffer {
  const bytes = Buffer.from(body as string, 'utf8');
  const lines = [`HTTP/1.1 ${status}`, ...headers, `Content-Length: ${bytes.length}`];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), bytes]);
}

/** The head of a streamed answer; chunks follow. */
export const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';

/** One chunk of a chunked answer. */
export function chunk(data: string | Buffer): Buffer {
  const bytes = Buffer.from(data as string, 'utf8');
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}

/** The end of a chunked answer. */
export const LAST_CHUNK = '0\r\n\r\n';
