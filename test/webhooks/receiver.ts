import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { eventually } from '../support/eventually.js';
import { LoopbackServer } from '../support/loopback-server.js';

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

/** Receives webhooks on loopback. */
export class Receiver extends LoopbackServer {
  readonly received: Received[] = [];
  /** Status of its responses. */
  status = 204;
  headers: Record<string, string> = {};
  /** Milliseconds until it responds. */
  delayMs = 0;

  protected override respond({ headers, url }: IncomingMessage, body: string, res: ServerResponse): void {
    this.received.push({ headers, path: url!, body });
    setTimeout(() => res.writeHead(this.status, this.headers).end(), this.delayMs).unref();
  }

  get url(): string {
    return `${this.origin}/hooks/postern?token=canary-receiver-token`;
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
