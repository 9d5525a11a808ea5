import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterFile } from './after-file.js';
import { unusedPort } from './unused-port.js';

const open = new Set<LoopbackServer>();
afterFile(async () => {
  await Promise.all([...open].map((server) => server.close()));
});

/** An HTTP server that can go and come back on its port. */
export abstract class LoopbackServer {
  private server: Server | null = null;
  private port = 0;

  /** @param body the whole of it */
  protected abstract respond(req: IncomingMessage, body: string, res: ServerResponse): void;

  /** Listens, on the same port each time. */
  async listen(): Promise<this> {
    this.server = createServer((req, res) => {
      let body = '';
      req.setEncoding('utf8').on('data', (text: string) => (body += text));
      req.on('end', () => this.respond(req, body, res));
    });
    this.port ||= await unusedPort();
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
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

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }
}
