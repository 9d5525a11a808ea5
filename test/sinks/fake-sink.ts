import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterFile } from '../support/after-file.js';

export interface SentMessage {
  headers: IncomingHttpHeaders;
  path: string;
  body: string;
}

/** Responds to a message; true: it was taken. */
export type Behaviour = (message: SentMessage, res: ServerResponse) => void;

const accept: Behaviour = (_, res) => void res.writeHead(204).end();

const open = new Set<FakeSink>();
afterFile(async () => {
  await Promise.all([...open].map((sink) => sink.close()));
});

/** An HTTP sink on loopback. */
export class FakeSink {
  readonly received: SentMessage[] = [];
  behave: Behaviour = accept;
  private server: Server | null = null;
  private port = 0;

  /** Listens, on the same port each time. */
  async listen(): Promise<this> {
    this.server = createServer((req, res) => {
      const chunks: Buffer[] = [];
      req.on('data', (chunk: Buffer) => chunks.push(chunk));
      req.on('end', () => {
        const body = Buffer.concat(chunks).toString();
        const message = { headers: req.headers, path: req.url!, body };
        this.received.push(message);
        this.behave(message, res);
      });
    });
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = (this.server.address() as AddressInfo).port;
    open.add(this);
    return this;
  }

  async close(): Promise<void> {
    open.delete(this);
    const { server } = this;
    this.server = null;
    server?.closeAllConnections();
    if (server !== null) await new Promise((closed) => server.close(closed));
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The rows, each as often as it was sent. */
  get rows(): (Record<string, unknown> & { id: string })[] {
    return this.received.flatMap(({ body }) =>
      body
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Record<string, unknown> & { id: string }),
    );
  }

  get ids(): string[] {
    return [...new Set(this.rows.map(({ id }) => id))].sort();
  }
}
