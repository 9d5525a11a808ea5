import { connect, type Socket } from 'node:net';
import { RawReader } from './raw-reader.js';

/** One response as its bytes came in. */
export interface ReceivedResponse {
  status: number;
  /** Status line and headers, latin-1. */
  head: string;
  headers: [name: string, value: string][];
  body: Buffer;
  header(name: string): string | undefined;
}

/** A client that speaks bytes. */
export class RawClient {
  readonly reader: RawReader;
  /** Settles when the gateway closes the connection. */
  readonly closed: Promise<void>;

  private constructor(readonly socket: Socket) {
    this.reader = new RawReader(socket);
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => {});
  }

  static async connect(port: number): Promise<RawClient> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return new RawClient(socket);
  }

  send(bytes: string | Buffer): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  }

  async head(): Promise<Omit<ReceivedResponse, 'body'>> {
    const head = await this.reader.head();
    const headers = head
      .split('\r\n')
      .slice(1)
      .map((line): [string, string] => [
        line.slice(0, line.indexOf(':')),
        line.slice(line.indexOf(':') + 1).trim(),
      ]);
    return {
      status: Number(head.slice(9, 12)),
      head,
      headers,
      header: (name) => headers.find(([key]) => key.toLowerCase() === name)?.[1],
    };
  }

  /** The next whole answer; `bodyless` for answers to HEAD. */
  async answer({ bodyless = false } = {}): Promise<ReceivedResponse> {
    const head = await this.head();
    const without = bodyless || head.status === 204 || head.status === 304;
    const body = without ? Buffer.alloc(0) : (await this.reader.body(head.headers, true)).bytes;
    return { ...head, body };
  }

  /** Leaves by a reset, which its peer learns of at once. */
  reset(): void {
    this.socket.resetAndDestroy();
  }

  destroy(): void {
    this.socket.destroy();
  }
}

/** Waits until a gateway in this process has read all that came before: also that a client has left. */
export async function noticed({ port }: { port: number }): Promise<void> {
  const client = await RawClient.connect(port);
  client.send(request('GET /health/live', []));
  await client.answer();
  client.destroy();
}

/** A request in bytes; Content-Length is added for a body unless the headers frame it. */
export function request(line: string, headers: string[], body: string | Buffer = ''): Buffer {
  const bytes = Buffer.from(body as string, 'utf8');
  const framed = headers.some((header) => /^(content-length|transfer-encoding):/i.test(header));
  const lines = [
    `${line} HTTP/1.1`,
    'Host: gateway.test',
    ...headers,
    ...(bytes.length > 0 && !framed ? [`Content-Length: ${bytes.length}`] : []),
  ];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), bytes]);
}
