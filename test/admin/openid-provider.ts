import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type Configuration, Provider } from 'oidc-provider';
import { unusedPort } from '../support/unused-port.js';

export const CLIENT_SECRET = 'a-client-secret-of-this-test';

/** A real OpenID provider, whose only page, the one to sign in at, signs `user` in. */
export class OpenIdProvider {
  /** The user who signs in next. */
  user = 'admin';
  /** Requests to its token endpoint. */
  tokenRequests = 0;
  /** Changes the nonce that the provider sees. */
  tamper = (nonce: string) => nonce;

  private constructor(
    readonly url: string,
    private readonly server: Server,
  ) {}

  /**
   * @param publicUrl of the gateway, its only client
   * @param users what it says of its users, by their names
   */
  static async start(
    publicUrl: string,
    users: Record<string, Record<string, unknown>>,
  ): Promise<OpenIdProvider> {
    const port = await unusedPort();
    const redirectUri = `${publicUrl}/admin/v1/oidc/callback`;
    const configuration: Configuration = {
      clients: [{ client_id: 'postern', client_secret: CLIENT_SECRET, redirect_uris: [redirectUri] }],
      claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'], profile: [] },
      conformIdTokenClaims: false,
      pkce: { required: () => true },
      features: { devInteractions: { enabled: false } },
      cookies: { keys: ['test'] },
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...users[id] }) }),
      renderError: (ctx, out) => void (ctx.body = JSON.stringify(out)),
    };
    const url = `http://127.0.0.1:${port}`;
    const provider = new Provider(url, configuration);
    const handle = provider.callback();
    const server = createServer((req, res) => {
      void (async () => {
        if (req.url === '/token') started.tokenRequests++;
        if (!req.url!.startsWith('/interaction/')) {
          req.url = req.url!.replace(
            /([?&]nonce=)([^&]+)/,
            (_, name: string, nonce: string) => name + started.tamper(nonce),
          );
          return void (await handle(req, res));
        }
        const { prompt, grantId, params, session } = await provider.interactionDetails(req, res);
        if (prompt.name === 'login')
          return provider.interactionFinished(req, res, { login: { accountId: started.user } });
        const grant = grantId
          ? (await provider.Grant.find(grantId))!
          : new provider.Grant({ accountId: session!.accountId, clientId: params.client_id as string });
        grant.addOIDCScope('openid email profile');
        return provider.interactionFinished(req, res, { consent: { grantId: await grant.save() } });
      })();
    });
    const started = new OpenIdProvider(url, server);
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return started;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }
}
