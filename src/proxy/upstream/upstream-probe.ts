import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Client } from 'undici';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import {
  ProviderProbe,
  type Verdict,
  verdictOfError,
  verdictOfStatus,
} from '../../providers/provider-probe.js';
import type { ProbeResult } from '../../providers/providers.schema.js';
import type { Provider } from '../../providers/provider.js';
import { leadsHome } from './loop-detection.js';
import { ForbiddenAddress, upstreamConnector } from './upstream-connector.js';

/** People wait for it. */
const LONGEST_MS = 10_000;
/** Lists of models are long; only the status is of interest. */
const MOST_BYTES = 262_144;

/** Asks a provider for its models, over a connection under the very rules that calls are under. */
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

  private async ask(provider: Provider): Promise<{ verdict: Verdict; status: number | null }> {
    const connect = upstreamConnector({
      connectTimeoutMs: Math.min(this.env.upstreamConnectTimeoutMs, LONGEST_MS),
      proxyUrl: this.env.upstreamProxyUrl,
      leadsHome: (socket) => leadsHome(this.host, socket),
    });
    const timeoutMs = Math.min(this.env.upstreamHeadersTimeoutMs, LONGEST_MS);
    const client = new Client(provider.origin, {
      connect: (options, callback) => void connect(options, callback),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    try {
      const { statusCode, body } = await client.request({
        method: 'GET',
        path: `${provider.basePath}/v1/models`,
        headers: headersFor(provider),
        signal: AbortSignal.timeout(2 * LONGEST_MS),
      });
      await body.dump({ limit: MOST_BYTES }).catch(() => {});
      return { verdict: verdictOfStatus(statusCode, provider.secret !== null), status: statusCode };
    } catch (error) {
      const verdict: Verdict =
        error instanceof ForbiddenAddress
          ? { ok: false, code: 'forbidden_address', message: `This url is refused: ${error.message}.` }
          : verdictOfError(error);
      return { verdict, status: null };
    } finally {
      await client.destroy();
    }
  }
}

function headersFor({ credential }: Provider): Record<string, string> {
  if (credential === null) return {};
  return {
    [credential.name]: credential.value,
    // Anthropic refuses every call without it (its API reference, Versioning); nobody else minds.
    ...(credential.name === 'x-api-key' && { 'anthropic-version': '2023-06-01' }),
  };
}
