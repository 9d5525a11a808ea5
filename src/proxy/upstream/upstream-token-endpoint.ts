import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { buildConnector, Client } from 'undici';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import {
  type MetadataCloud,
  METADATA_ORIGINS,
} from '../../providers/credentials/keyless/metadata-services.js';
import {
  type RequestHeaders,
  TokenEndpoint,
  TokenError,
  type TokenResponse,
} from '../../providers/credentials/token-endpoint.js';
import { verdictOfError } from '../../providers/provider-probe.js';
import { isProxyLoop } from './loop-detection.js';
import { ForbiddenAddress, upstreamConnector } from './upstream-connector.js';
import { patience } from '../../platform/patience.js';

/** Calls wait for it. */
const PATIENCE = patience('a token endpoint', 15_000);
const MAX_BYTES = 65_536;
/** It is on the same machine. */
const MAX_METADATA_CONNECT = patience('a connection to a metadata service', 2_000);

/** Requests access tokens over a connection with the same rules as for calls: addresses, TLS, egress proxy, timeouts. */
@Injectable()
export class UpstreamTokenEndpoint extends TokenEndpoint {
  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly host: HttpAdapterHost,
  ) {
    super();
  }

  async post(
    url: string,
    body: URLSearchParams | Readonly<Record<string, unknown>>,
    headers: RequestHeaders = {},
  ): Promise<TokenResponse> {
    const connect = upstreamConnector({
      connectTimeoutMs: Math.min(this.env.upstreamConnectTimeoutMs, PATIENCE.ms),
      proxyUrl: this.env.upstreamProxyUrl,
      isProxyLoop: (socket) => isProxyLoop(this.host, socket),
    });
    const isForm = body instanceof URLSearchParams;
    const request = {
      method: 'POST',
      headers: {
        'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
        accept: 'application/json',
        ...headers,
      },
      body: isForm ? body.toString() : JSON.stringify(body),
    } as const;
    return this.ask(url, (options, callback) => void connect(options, callback), request);
  }

  async metadata(
    cloud: MetadataCloud,
    url: string,
    headers: RequestHeaders,
    method: 'GET' | 'PUT' = 'GET',
  ): Promise<TokenResponse> {
    if (this.env.cloudIdentity !== cloud)
      throw new TokenError(
        `the metadata service is asked only with CLOUD_IDENTITY=${cloud} in the environment`,
      );
    if (!METADATA_ORIGINS[cloud].includes(new URL(url).origin))
      throw new TokenError(`the metadata service must be at one of ${METADATA_ORIGINS[cloud].join(', ')}`);
    // Directly: another machine's identity would be the one of an egress proxy.
    const timeout = Math.min(this.env.upstreamConnectTimeoutMs, MAX_METADATA_CONNECT.ms);
    return this.ask(url, buildConnector({ timeout }), { method, headers, body: null });
  }

  private async ask(
    url: string,
    connect: buildConnector.connector,
    request: { method: 'GET' | 'POST' | 'PUT'; headers: RequestHeaders; body: string | null },
  ): Promise<TokenResponse> {
    const { origin, pathname, search } = new URL(url);
    const client = new Client(origin, {
      connect,
      headersTimeout: Math.min(this.env.upstreamHeadersTimeoutMs, PATIENCE.ms),
      bodyTimeout: PATIENCE.ms,
    });
    try {
      const { statusCode, headers, body } = await client.request({
        ...request,
        path: pathname + search,
        signal: AbortSignal.timeout(PATIENCE.ms),
      });
      const chunks: Buffer[] = [];
      let length = 0;
      for await (const chunk of body) {
        length += (chunk as Buffer).length;
        if (length > MAX_BYTES) throw new TokenError('the token endpoint sent more than 64 KiB');
        chunks.push(chunk as Buffer);
      }
      const date = Date.parse(String(headers.date));
      return {
        status: statusCode,
        text: Buffer.concat(chunks).toString(),
        date: Number.isNaN(date) ? null : date,
      };
    } catch (error) {
      if (error instanceof TokenError) throw error;
      const { code, message } =
        error instanceof ForbiddenAddress
          ? { code: 'forbidden_address', message: error.message }
          : verdictOfError(error);
      // The sentences are about a provider's URL, and others follow.
      const said = message
        .replace(/\.$/, '')
        .replace(/\bThe provider\b/, 'It')
        .replace(/\bthe provider\b/, 'the token endpoint');
      throw new TokenError(`the token endpoint did not respond (${code}): ${said}`, { cause: error });
    } finally {
      await client.destroy();
    }
  }
}
