import { once } from 'node:events';
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';
import { unusedPort } from '../support/unused-port.js';

const SECRET = 'a-client-secret-of-this-test';

/** A real issuer of workload tokens: signed access tokens for the client `job`, with one audience. */
export async function startWorkloadIssuer(audience: string) {
  const port = await unusedPort();
  const url = `http://127.0.0.1:${port}`;
  const resource = 'urn:gateway';
  const provider = new Provider(url, {
    clients: [
      {
        client_id: 'job',
        client_secret: SECRET,
        redirect_uris: [],
        response_types: [],
        grant_types: ['client_credentials'],
      },
    ],
    cookies: { keys: ['test'] },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: 'call',
          audience,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 600,
        }),
      },
    },
  });
  const handle = provider.callback();
  const server = createServer((req, res) => void handle(req, res)).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url,
    async token(): Promise<string> {
      const response = await fetch(`${url}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${Buffer.from(`job:${SECRET}`).toString('base64')}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource, scope: 'call' }),
      });
      const { access_token: token } = (await response.json()) as { access_token: string };
      return token;
    },
    async stop(): Promise<void> {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
