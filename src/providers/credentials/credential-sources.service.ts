import { hash } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { AccessTokens } from './access-tokens.js';
import { type AuthSettings, type CloudAuth, isCloudAuth } from './auth-kinds.js';
import { AwsSigner } from './aws-signer.js';
import { requestClientToken } from './client-credentials.js';
import type { RequestSigner } from './request-signer.js';
import { requestServiceAccountToken } from './service-account.js';
import { type IssuedToken, TokenEndpoint } from './token-endpoint.js';

/** What gives a provider its credential for each call; nothing for a secret that is sent as it is. */
export interface CredentialSource {
  readonly signer: RequestSigner | null;
  readonly tokens: AccessTokens | null;
  /** A secret that goes with each request; null if none does. */
  readonly sent: string | null;
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

  constructor(private readonly endpoint: TokenEndpoint) {}

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
    if (secret === null || settings === null) throw new Error('its secret or its auth_settings are missing');
    return MAKERS[auth](stored.origin, settings, secret, (request) => ({
      signer: null,
      tokens: new AccessTokens(
        () => request(this.endpoint),
        (reason, hasToken) => this.tell(stored.name, reason, hasToken),
      ),
      sent: null,
    }));
  }

  private tell(name: string, reason: Error, hasToken: boolean): void {
    const effect = hasToken ? 'Calls go on with the old one until it expires' : 'Its calls get 502';
    this.logger.warn(`No new access token for provider ${name}: ${reason.message}. ${effect}.`);
  }
}

type Requested = (request: (endpoint: TokenEndpoint) => Promise<IssuedToken>) => CredentialSource;
type Maker = (origin: string, settings: AuthSettings, secret: string, by: Requested) => CredentialSource;

/** What checkCredential() stored is read here. */
const MAKERS: Record<CloudAuth, Maker> = {
  'aws-sigv4': (origin, { access_key_id, region, service }, secret) => {
    const { secret_access_key: secretAccessKey, session_token: sessionToken } = JSON.parse(secret) as {
      secret_access_key: string;
      session_token: string | null;
    };
    const credential = {
      ...{ accessKeyId: access_key_id!, secretAccessKey, sessionToken },
      ...{ region: region!, service: service! },
    };
    return { signer: new AwsSigner(new URL(origin).host, credential), tokens: null, sent: sessionToken };
  },
  google: (_, { scope }, secret, by) => {
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
    return by((endpoint) => requestServiceAccountToken(account, endpoint));
  },
  oauth2: (_, { token_url, client_id, scope = null }, clientSecret, by) => {
    const client = { tokenUrl: token_url!, clientId: client_id!, clientSecret, scope };
    return by((endpoint) => requestClientToken(client, endpoint));
  },
};
