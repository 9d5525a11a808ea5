import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import {
  ProviderProbe,
  type Verdict,
  verdictOfDenied,
  verdictOfError,
  verdictOfRejectedToken,
  verdictOfStatus,
  verdictOfToken,
} from '../../providers/provider-probe.js';
import type { ProbeResult } from '../../providers/providers.schema.js';
import { type Provider, withAccessToken } from '../../providers/provider.js';
import { ForbiddenAddress } from './upstream-connector.js';
import { headersFor, openClient } from './upstream-reader.js';
import { patience } from '../../platform/patience.js';

/** Somebody waits for the result. */
const PATIENCE = patience('a test of a provider', 10_000);
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
    const client = openClient(provider, this.env, this.host, PATIENCE.ms);
    try {
      const path = `${provider.basePath}/v1/models`;
      const { statusCode, headers, body } = await client.request({
        method: 'GET',
        path,
        headers: headersFor(provider, path),
        signal: AbortSignal.timeout(2 * PATIENCE.ms),
      });
      await body.dump({ limit: MAX_BYTES }).catch(() => {});
      const { signer, secret, forwardsCredentials } = provider;
      const verdict =
        signer !== null && statusCode === 403
          ? verdictOfDenied(Date.parse(String(headers.date)) - Date.now())
          : stored.tokens !== null && statusCode === 404
            ? TOKEN_ONLY
            : stored.tokens !== null && (statusCode === 401 || statusCode === 403)
              ? verdictOfRejectedToken()
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
  message: 'OK: a credential was issued and the provider responded. It has no /v1/models to check more.',
};
