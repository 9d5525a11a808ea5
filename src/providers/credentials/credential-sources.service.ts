import { hash } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { AccessTokens } from './access-tokens.js';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { type AuthSettings, type CloudAuth, isCloudAuth, isKeyless } from './auth-kinds.js';
import { AwsSigner } from './aws-signer.js';
import { requestClientToken } from './client-credentials.js';
import { exchangeAtAnthropic, OAUTH_BETA } from './keyless/anthropic-federation.js';
import { requestAwsKeys } from './keyless/aws-credentials.js';
import { requestEntraToken } from './keyless/entra-tokens.js';
import type { Exchange } from './keyless/exchange.js';
import { requestGoogleToken } from './keyless/google-tokens.js';
import { IdentityTokens } from './keyless/identity-tokens.service.js';
import { exchangeAtOpenAi } from './keyless/openai-federation.js';
import type { RequestSigner } from './request-signer.js';
import { requestServiceAccountToken } from './service-account.js';
import { type Issued, type IssuedToken, TokenEndpoint } from './token-endpoint.js';

/** What a call is sent with. Made once for each credential, and not for each call. */
export interface SentCredential {
  readonly credential: { readonly name: string; readonly value: string } | null;
  readonly signer: RequestSigner | null;
  /** What goes with the request and must not come back. */
  readonly secret: string;
}

/** What gives a provider its credential for each call; nothing for a secret that is sent as it is. */
export interface CredentialSource {
  /** True if requests are signed, for which their bodies are gathered. */
  readonly signs: boolean;
  /** Signs with a credential that does not expire here. */
  readonly signer: RequestSigner | null;
  readonly tokens: AccessTokens<SentCredential> | null;
  /** A secret that goes with each request; null if none does. */
  readonly sent: string | null;
  /** A value that `anthropic-beta` must have. */
  readonly beta: string | null;
}

/** A provider's way of authentication as it is stored, its secret decrypted. */
export interface StoredCredential {
  readonly name: string;
  /** Scheme, host and port of its URL. */
  readonly origin: string;
  readonly auth: string;
  readonly settings: AuthSettings | null;
  readonly secret: string | null;
}

/** @param url of the provider, valid */
export function storedCredential(
  row: { name: string; auth: string; auth_settings: AuthSettings | null },
  url: string,
  secret: string | null,
): StoredCredential {
  return {
    name: row.name,
    origin: new URL(url).origin,
    auth: row.auth,
    settings: row.auth_settings,
    secret,
  };
}

interface Kept {
  digest: string;
  source: CredentialSource;
}

/** Makes the sources of providers' credentials. One that has not changed is kept, so that its access token is too. */
@Injectable()
export class CredentialSources {
  private readonly logger = new Logger('Providers');
  private kept = new Map<string, Kept>();

  constructor(
    private readonly endpoint: TokenEndpoint,
    private readonly identities: IdentityTokens,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /**
   * Starts a new reading of all providers. The sources that `of` is not asked for until `end` are dropped.
   *
   * @returns of: the source of a provider, by its ID; end: call when all are read
   */
  read(): { of(id: string, stored: StoredCredential): CredentialSource | null; end(): void } {
    const next = new Map<string, Kept>();
    return {
      of: (id, stored) => {
        if (!isCloudAuth(stored.auth)) return null;
        const digest = hash('sha256', JSON.stringify(stored), 'hex');
        const before = this.kept.get(id);
        const kept = before?.digest === digest ? before : { digest, source: this.make(stored)! };
        next.set(id, kept);
        return kept.source;
      },
      end: () => (this.kept = next),
    };
  }

  /** A source of its own, without an access token yet. @returns null for a secret that is sent as it is */
  make(stored: StoredCredential): CredentialSource | null {
    const { auth, settings, secret } = stored;
    if (!isCloudAuth(auth)) return null;
    if (settings === null) throw new Error('its auth_settings are missing');
    if (isKeyless(auth, settings)) return this.makeKeyless(auth, stored, settings);
    if (secret === null) throw new Error('its secret is missing');
    if (auth === 'aws-sigv4') return signing(stored.origin, settings, secret);
    const request = auth === 'google' ? ofServiceAccount(settings, secret) : ofClient(settings, secret);
    return this.expiring(stored.name, async () => bearer(await request(this.endpoint)));
  }

  private makeKeyless(
    auth: CloudAuth,
    { name: provider, origin }: StoredCredential,
    settings: AuthSettings,
  ): CredentialSource {
    const { endpoint, identities, env } = this;
    const exchange: Exchange = { provider, origin, settings, endpoint, identities, env };
    if (auth === 'aws-sigv4') {
      const target = { region: settings.region!, service: settings.service! };
      const request = async () => {
        const { value: keys, lifeMs } = await requestAwsKeys(exchange);
        const signer = new AwsSigner(new URL(origin).host, { ...keys, ...target });
        return { value: { credential: null, signer, secret: keys.sessionToken! }, lifeMs };
      };
      return { ...this.expiring(provider, request), signs: true };
    }
    const source = this.expiring(provider, async () => bearer(await TOKEN_EXCHANGES[auth](exchange)));
    return auth === 'anthropic-federation' ? { ...source, beta: OAUTH_BETA } : source;
  }

  private expiring(name: string, request: () => Promise<Issued<SentCredential>>): CredentialSource {
    const tokens = new AccessTokens(request, (reason, hasToken) => this.tell(name, reason, hasToken));
    return { ...NO_SOURCE, tokens };
  }

  private tell(name: string, reason: Error, hasToken: boolean): void {
    const effect = hasToken ? 'Calls go on with the old one until it expires' : 'Its calls get 502';
    this.logger.warn(`No new access token for provider ${name}: ${reason.message}. ${effect}.`);
  }
}

const NO_SOURCE: CredentialSource = { signs: false, signer: null, tokens: null, sent: null, beta: null };

const TOKEN_EXCHANGES: Record<
  Exclude<CloudAuth, 'aws-sigv4'>,
  (exchange: Exchange) => Promise<IssuedToken>
> = {
  google: requestGoogleToken,
  oauth2: requestEntraToken,
  'openai-federation': exchangeAtOpenAi,
  'anthropic-federation': exchangeAtAnthropic,
};

function bearer({ value: token, lifeMs }: IssuedToken): Issued<SentCredential> {
  const credential = { name: 'Authorization', value: `Bearer ${token}` };
  return { value: { credential, signer: null, secret: token }, lifeMs };
}

// What checkCredential() stored is read here.

function signing(
  origin: string,
  { access_key_id, region, service }: AuthSettings,
  secret: string,
): CredentialSource {
  const { secret_access_key: secretAccessKey, session_token: sessionToken } = JSON.parse(secret) as {
    secret_access_key: string;
    session_token: string | null;
  };
  const credential = {
    ...{ accessKeyId: access_key_id!, secretAccessKey, sessionToken },
    ...{ region: region!, service: service! },
  };
  const signer = new AwsSigner(new URL(origin).host, credential);
  return { ...NO_SOURCE, signs: true, signer, sent: sessionToken };
}

function ofServiceAccount({ scope }: AuthSettings, secret: string) {
  const file = JSON.parse(secret) as Record<'client_email' | 'private_key' | 'token_uri', string> & {
    private_key_id: string | null;
  };
  const account = {
    clientEmail: file.client_email,
    privateKey: file.private_key,
    privateKeyId: file.private_key_id,
    tokenUrl: file.token_uri,
    scope: scope!,
  };
  return (endpoint: TokenEndpoint) => requestServiceAccountToken(account, endpoint);
}

function ofClient({ token_url, client_id, scope }: AuthSettings, clientSecret: string) {
  const client = { tokenUrl: token_url!, clientId: client_id!, clientSecret, scope: scope ?? null };
  return (endpoint: TokenEndpoint) => requestClientToken(client, endpoint);
}
