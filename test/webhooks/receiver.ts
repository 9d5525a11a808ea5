import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { afterFile } from '../support/after-file.js';
import { eventually } from '../support/eventually.js';

export interface Received {
  headers: IncomingHttpHeaders;
  path: string;
  body: string;
}

export interface Payload {
  type: string;
  timestamp: string;
  data: Record<string, unknown>;
}

const open = new Set<Receiver>();
afterFile(async () => {
  await Promise.all([...open].map((receiver) => receiver.close()));
});

/** Receives webhooks on loopback. */
export class Receiver {
  readonly received: Received[] = [];
  /** Status of its responses. */
  status = 204;
  headers: Record<string, string> = {};
  /** Milliseconds until it responds. */
  delayMs = 0;
  private server: Server | null = null;
  private port = 0;

  /** Listens, on the same port each time. */
  async listen(): Promise<this> {
    this.server = createServer((req, res) => {
      let body = '';
      req.setEncoding('utf8').on('data', (text: string) => (body += text));
      req.on('end', () => {
        this.received.push({ headers: req.headers, path: req.url!, body });
        setTimeout(() => res.writeHead(this.status, this.headers).end(), this.delayMs).unref();
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
    return `http://127.0.0.1:${this.port}/hooks/postern?token=canary-receiver-token`;
  }

  /** Waits until so many requests have arrived. */
  async until(count: number): Promise<Received[]> {
    await eventually(() => this.received.length >= count);
    return this.received;
  }

  get types(): string[] {
    return this.received.map(({ body }) => (JSON.parse(body) as Payload).type);
  }
}

/** The payload of a request whose signature the package of Standard Webhooks accepts. */
export function verified({ headers, body }: Received, secret: string): Payload {
  return new Webhook(secret).verify(body, headers as Record<string, string>) as Payload;
}
