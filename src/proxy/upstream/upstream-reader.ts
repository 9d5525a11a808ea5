import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Client } from 'undici';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { type Provider, withAccessToken } from '../../providers/provider.js';
import { ProviderReader, type ProviderResponse } from '../../providers/provider-reader.js';
import { isProxyLoop } from './loop-detection.js';
import { upstreamConnector } from './upstream-connector.js';
import { patience } from '../../platform/patience.js';

/** No call waits for the response. */
const PATIENCE = patience('a reading from a provider', 30_000);

/** Reads from providers over connections of its own, so that no call waits for one. */
@Injectable()
export class UpstreamReader extends ProviderReader {
  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly host: HttpAdapterHost,
  ) {
    super();
  }

  async get<T>(
    stored: Provider,
    path: string,
    signal: AbortSignal,
    use: (response: ProviderResponse) => Promise<T>,
  ): Promise<T> {
    const provider = stored.tokens === null ? stored : await withAccessToken(stored, stored.tokens);
    const client = openClient(provider, this.env, this.host, PATIENCE.ms);
    try {
      const target = `${provider.basePath}${path}`;
      const headers = headersFor(provider, target);
      const { statusCode, body } = await client.request({ method: 'GET', path: target, headers, signal });
      return await use({ status: statusCode, body });
    } finally {
      await client.destroy();
    }
  }
}

/** A connection for requests of the gateway itself, with the same rules as for calls. */
export function openClient(
  { origin }: Pick<Provider, 'origin'>,
  env: Settings,
  host: HttpAdapterHost,
  maxMs: number,
): Client {
  const connect = upstreamConnector({
    connectTimeoutMs: Math.min(env.upstreamConnectTimeoutMs, maxMs),
    proxyUrl: env.upstreamProxyUrl,
    isProxyLoop: (socket) => isProxyLoop(host, socket),
  });
  const timeoutMs = Math.min(env.upstreamHeadersTimeoutMs, maxMs);
  return new Client(origin, {
    connect: (options, callback) => void connect(options, callback),
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  });
}

/** The headers of a GET request with the secret of the provider. */
export function headersFor(
  { credential, signer, beta }: Provider,
  path: string,
): Record<string, string> | string[] {
  if (signer !== null) return signer.sign('GET', path, [], null);
  if (credential === null) return {};
  return {
    [credential.name]: credential.value,
    // Anthropic rejects every call without it (its API reference, Versioning); other providers ignore it.
    ...((credential.name === 'x-api-key' || beta !== null) && { 'anthropic-version': '2023-06-01' }),
    ...(beta !== null && { 'anthropic-beta': beta }),
  };
}
