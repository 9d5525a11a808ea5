import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Configuration, Provider } from 'oidc-provider';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey } from 'jose';

type Claims = { sub: string; groups?: string[] };

const KID = 'of-this-provider';
export const CLIENT_SECRET = 'a-client-secret-of-this-test';

/** A real OpenID provider, whose only page, the one to sign in at, signs `user` in. */
export class OpenIdProvider {
  /** The user who signs in next. */
  user = 'admin';
  /** Requests to its token endpoint. */
  tokenRequests = 0;
  /** Users who have been deleted there. */
  readonly gone = new Set<string>();
  /** Until when it answers no requests to its token endpoint. */
  held: Promise<void> | null = null;
  /** Whether ID tokens have the groups. Its user info always does. */
  groupsInIdTokens = true;
  /** Whether it gives an ID token with new tokens for a refresh token. */
  idTokensAtRefresh = true;
  /** Whom its user info names; null: the user whom it is asked about. */
  subjectOfUserInfo: string | null = null;
  /** Its keys cannot be read. */
  hidesKeys = false;
  /** Changes the nonce that the provider sees. */
  tamper = (nonce: string) => nonce;

  private constructor(
    readonly url: string,
    private readonly server: Server,
    private readonly provider: Provider,
    private readonly key: CryptoKey,
  ) {}

  /**
   * @param publicUrl of the gateway, its only client
   * @param users what it says of its users, by their names
   * @param options refresh: whether it gives refresh tokens; userinfo: whether it has such an endpoint
   */
  static async start(
    publicUrl: string,
    users: Record<string, Record<string, unknown>>,
    { refresh = false, userinfo = true } = {},
  ): Promise<OpenIdProvider> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const redirectUri = `${publicUrl}/admin/v1/oidc/callback`;
    const { privateKey } = await generateKeyPair('RS256', { extractable: true });
    const configuration: Configuration = {
      clients: [
        {
          client_id: 'postern',
          client_secret: CLIENT_SECRET,
          redirect_uris: [redirectUri],
          backchannel_logout_uri: `${publicUrl}/admin/v1/oidc/logout`,
          // So that ID tokens name the session.
          backchannel_logout_session_required: true,
          grant_types: ['authorization_code', ...(refresh ? (['refresh_token'] as const) : [])],
        },
      ],
      issueRefreshToken: () => Promise.resolve(refresh),
      // It reaches no gateway on this machine by itself.
      fetch: (url, init) => {
        const { dispatcher: _, ...options } = (init ?? {}) as RequestInit & { dispatcher?: unknown };
        return fetch(url, options);
      },
      claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'], profile: ['name'] },
      conformIdTokenClaims: false,
      pkce: { required: () => true },
      features: {
        devInteractions: { enabled: false },
        backchannelLogout: { enabled: true },
        userinfo: { enabled: userinfo },
      },
      jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: KID, use: 'sig', alg: 'RS256' }] },
      cookies: { keys: ['test'] },
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      findAccount: (_, id) =>
        started.gone.has(id)
          ? undefined
          : {
              accountId: id,
              claims: (use) => {
                const { groups, ...claims } = { sub: id, ...users[id] } as Claims;
                return use === 'id_token' && !started.groupsInIdTokens ? claims : { ...claims, groups };
              },
            },
      renderError: (ctx, out) => void (ctx.body = JSON.stringify(out)),
    };
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const provider = new Provider(url, configuration);
    provider.use(async (ctx, next) => {
      await next();
      // Only there once the request has been read.
      const { oidc, body } = ctx as { oidc?: { params?: Record<string, unknown> }; body: unknown };
      if (oidc?.params?.grant_type === 'refresh_token' && !started.idTokensAtRefresh)
        delete (body as { id_token?: string }).id_token;
      if (ctx.path === '/me' && started.subjectOfUserInfo !== null)
        (body as Claims).sub = started.subjectOfUserInfo;
    });
    const handle = provider.callback();
    server.on('request', (req, res) => {
      void (async () => {
        if (req.url === '/token') {
          started.tokenRequests++;
          await started.held;
        }
        if (req.url === '/jwks' && started.hidesKeys) return void res.writeHead(503).end();
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
    const started = new OpenIdProvider(url, server, provider, privateKey);
    return started;
  }

  /** Tells the gateway that a session at the provider has ended, as it does when a user signs out there. */
  async signOut(subject: string, sid: string): Promise<void> {
    const client = (await this.provider.Client.find('postern')) as unknown as {
      backchannelLogout(subject: string, sid: string): Promise<void>;
    };
    await client.backchannelLogout(subject, sid);
  }

  /** A logout token, with these claims in place of the usual ones; undefined leaves one out. */
  async logoutToken(
    claims: Record<string, unknown>,
    header: Record<string, unknown> = {},
    key = this.key,
  ): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
    const all = { iss: this.url, aud: 'postern', iat: now, exp: now + 120, jti: 'one', events, ...claims };
    const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    return new SignJWT(given)
      .setProtectedHeader({ alg: 'RS256', kid: KID, typ: 'logout+jwt', ...header })
      .sign(key);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }
}
