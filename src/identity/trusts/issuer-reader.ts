import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { openClient } from '../../proxy/upstream/upstream-reader.js';
import { isSameIssuer, issuerProblem } from './issuer-url.js';
import { publicKeysOf } from './jwks.js';
import type { PublicKeys } from './trust.entity.js';
import { patience } from '../../platform/patience.js';

const PATIENCE = patience('an issuer', 10_000);
const MAX_BYTES = 262_144;

/** The keys of an issuer could not be read. The message is for administrators. */
export class IssuerError extends Error {
  override readonly name = 'IssuerError';
}

/** Reads the public keys of issuers, by the rules for addresses of providers, within bounds, without following redirects. */
@Injectable()
export class IssuerReader {
  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly host: HttpAdapterHost,
  ) {}

  /**
   * Reads the keys that the discovery document of an issuer names (OpenID Connect Discovery 4).
   *
   * @throws IssuerError
   */
  async keysOf(issuer: string): Promise<PublicKeys> {
    const signal = AbortSignal.timeout(PATIENCE.ms);
    const at = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const document = (await this.get(at, signal)) as { issuer?: unknown; jwks_uri?: unknown } | null;
    const name = document?.issuer;
    const isSame = issuer === this.env.oidcIssuer ? isSameIssuer(name, issuer) : name === issuer;
    // Otherwise one issuer could vouch for another (4.3).
    if (!isSame) throw new IssuerError(`the issuer that ${at} names is not exactly this issuer`);
    const uri = document?.jwks_uri;
    if (typeof uri !== 'string' || issuerProblem(uri) !== null)
      throw new IssuerError(`the jwks_uri that ${at} names is not allowed`);
    const keys = publicKeysOf(await this.get(uri, signal));
    if (keys === null) throw new IssuerError(`${uri} has no list of at most 100 keys`);
    return keys;
  }

  private async get(url: string, signal: AbortSignal): Promise<unknown> {
    const { origin, pathname } = new URL(url);
    const client = openClient({ origin }, this.env, this.host, PATIENCE.ms);
    try {
      const { statusCode, body } = await client.request({
        method: 'GET',
        path: pathname,
        headers: { accept: 'application/json' },
        signal,
      });
      if (statusCode !== 200) throw new IssuerError(`${url} responded with status ${statusCode}`);
      const chunks: Buffer[] = [];
      let length = 0;
      for await (const chunk of body) {
        length += (chunk as Buffer).length;
        if (length > MAX_BYTES) throw new IssuerError(`${url} sent more than 256 KiB`);
        chunks.push(chunk as Buffer);
      }
      return JSON.parse(Buffer.concat(chunks).toString());
    } catch (error) {
      if (error instanceof IssuerError) throw error;
      const why = error instanceof SyntaxError ? 'what it sent is not JSON' : (error as Error).message;
      throw new IssuerError(`${url} could not be read: ${why}`, { cause: error });
    } finally {
      await client.destroy();
    }
  }
}
