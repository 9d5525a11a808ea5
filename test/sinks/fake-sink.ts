import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { LoopbackServer } from '../support/loopback-server.js';

export interface SentMessage {
  headers: IncomingHttpHeaders;
  path: string;
  body: string;
}

/** Responds to a message; true: it was taken. */
export type Behaviour = (message: SentMessage, res: ServerResponse) => void;

const accept: Behaviour = (_, res) => void res.writeHead(204).end();

/** An HTTP sink on loopback. */
export class FakeSink extends LoopbackServer {
  readonly received: SentMessage[] = [];
  behave: Behaviour = accept;

  protected override respond({ headers, url }: IncomingMessage, body: string, res: ServerResponse): void {
    const message = { headers, path: url!, body };
    this.received.push(message);
    this.behave(message, res);
  }

  get url(): string {
    return this.origin;
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
