import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

const folder = join(__dirname, 'tls');

/** The authority that signed the provider's certificate. Its key was thrown away; nobody else trusts it. */
export const TEST_CA = join(folder, 'ca.pem');

/** A provider behind TLS, for `provider.test`, `localhost` and 127.0.0.1. Answers with the target it was asked for. */
export class TlsProvider {
  readonly authorizations: (string | undefined)[] = [];

  private constructor(private readonly server: ReturnType<typeof createServer>) {
    server.on('request', (req, res) => {
      this.authorizations.push(req.headers.authorization);
      req.resume().on('end', () => res.end(req.url));
    });
    server.on('tlsClientError', () => {});
  }

  static async start(): Promise<TlsProvider> {
    const server = createServer({
      cert: readFileSync(join(folder, 'provider.pem')),
      key: readFileSync(join(folder, 'provider-key.pem')),
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new TlsProvider(server);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
