import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Client } from 'undici';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import {
  ProviderProbe,
  type Verdict,
  verdictOfDenied,
  verdictOfError,
  verdictOfStatus,
  verdictOfToken,
} from '../../providers/provider-probe.js';
import type { ProbeResult } from '../../providers/providers.schema.js';
import { type Provider, withAccessToken } from '../../providers/provider.js';
import { isProxyLoop } from './loop-detection.js';
import { ForbiddenAddress, upstreamConnector } from './upstream-connector.js';

/** Somebody waits for the result. */
const MAX_MS = 10_000;
/** Lists of models are long, and only the status is used. */
const MAX_BYTES = 262_144;

/** Requests a provider's list of models, over a connection with the same rules as for calls. */
@Injectable()
export class UpstreamProbe extends ProviderProbe {
  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly host: HttpAdapterHost,
  ) {
    super();
  }

  async run(provider: Provider): Promise<ProbeResult> {
    const startedAt = performance.now();
    const { verdict, status } = await this.ask(provider);
    return { ...verdict, status, duration_ms: Math.round(performance.now() - startedAt) };
  }

  private async ask(stored: Provider): Promise<{ verdict: Verdict; status: number | null }> {
    let provider = stored;
    try {
      if (stored.tokens !== null) provider = await withAccessToken(stored, stored.tokens);
    } catch (error) {
      return { verdict: verdictOfToken((error as Error).cause), status: null };
    }
    const connect = upstreamConnector({
      connectTimeoutMs: Math.min(this.env.upstreamConnectTimeoutMs, MAX_MS),
      proxyUrl: this.env.upstreamProxyUrl,
      isProxyLoop: (socket) => isProxyLoop(this.host, socket),
    });
    const timeoutMs = Math.min(this.env.upstreamHeadersTimeoutMs, MAX_MS);
    const client = new Client(provider.origin, {
      connect: (options, callback) => void connect(options, callback),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    try {
      const path = `${provider.basePath}/v1/models`;
      const { statusCode, headers, body } = await client.request({
        method: 'GET',
        path,
        headers: headersFor(provider, path),
        signal: AbortSignal.timeout(2 * MAX_MS),
      });
      await body.dump({ limit: MAX_BYTES }).catch(() => {});
      const { signer, secret, forwardsCredentials } = provider;
      const verdict =
        signer !== null && statusCode === 403
          ? verdictOfDenied(Date.parse(String(headers.date)) - Date.now())
          : stored.tokens !== null && statusCode === 404
            ? TOKEN_ONLY
            : verdictOfStatus(statusCode, signer !== null || secret !== null, forwardsCredentials);
      return { verdict, status: statusCode };
    } catch (error) {
      const verdict: Verdict =
        error instanceof ForbiddenAddress
          ? { ok: false, code: 'forbidden_address', message: `This URL is not allowed: ${error.message}.` }
          : verdictOfError(error);
      return { verdict, status: null };
    } finally {
      await client.destroy();
    }
  }
}

const TOKEN_ONLY: Verdict = {
  ok: true,
  code: 'ok',
  message:
    'OK: the token endpoint accepted the secret and the provider responded. It has no /v1/models to check more.',
};

function headersFor({ credential, signer }: Provider, path: string): Record<string, string> | string[] {
  if (signer !== null) return signer.sign('GET', path, [], null);
  if (credential === null) return {};
  return {
    [credential.name]: credential.value,
    // Anthropic rejects every call without it (its API reference, Versioning); other providers ignore it.
    ...(credential.name === 'x-api-key' && { 'anthropic-version': '2023-06-01' }),
  };
}
