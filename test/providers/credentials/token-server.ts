import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterFile } from '../../support/after-file.js';
import { unusedPort } from '../../support/unused-port.js';

interface Asked {
  form: URLSearchParams;
  headers: NodeJS.Dict<string | string[]>;
}

type Respond = (
  asked: Asked,
) => { status?: number; body: unknown; headers?: Record<string, string> } | Promise<never>;

const running = new Set<TokenServer>();
afterFile(async () => {
  await Promise.all([...running].map((server) => server.stop()));
});

/** A token endpoint that issues what the test says. */
export class TokenServer {
  readonly asked: Asked[] = [];
  /** Requests that have no response yet, and the most there were at a time. */
  open = 0;
  most = 0;
  /** Delays each response. */
  delayMs = 0;

  private constructor(
    private readonly server: Server,
    public respond: Respond,
  ) {
    server.on('request', (req, res) => {
      this.most = Math.max(this.most, ++this.open);
      const chunks: Buffer[] = [];
      req.on('data', (chunk: Buffer) => chunks.push(chunk));
      req.on('end', () => {
        const asked = { form: new URLSearchParams(Buffer.concat(chunks).toString()), headers: req.headers };
        this.asked.push(asked);
        setTimeout(() => {
          void Promise.resolve(this.respond(asked)).then(({ status = 200, body, headers = {} }) => {
            this.open--;
            res.writeHead(status, { 'content-type': 'application/json', ...headers });
            res.end(typeof body === 'string' ? body : JSON.stringify(body));
          });
        }, this.delayMs);
      });
    });
  }

  static async start(respond?: Respond): Promise<TokenServer> {
    const server = createServer();
    // Nothing listens there once it has stopped.
    const port = await unusedPort();
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    let issued = 0;
    const started = new TokenServer(server, respond ?? (() => issue(`token-${++issued}`)));
    running.add(started);
    return started;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/token`;
  }

  async stop(): Promise<void> {
    running.delete(this);
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

export const issue = (token: string, seconds: unknown = 3_600) => ({
  body: { access_token: token, token_type: 'Bearer', expires_in: seconds },
});
