import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Client } from 'undici';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { TokenEndpoint, TokenError, type TokenResponse } from '../../providers/credentials/token-endpoint.js';
import { verdictOfError } from '../../providers/provider-probe.js';
import { isProxyLoop } from './loop-detection.js';
import { ForbiddenAddress, upstreamConnector } from './upstream-connector.js';

/** Calls wait for it. */
const MAX_MS = 15_000;
const MAX_BYTES = 65_536;

/** Requests access tokens over a connection with the same rules as for calls: addresses, TLS, egress proxy, timeouts. */
@Injectable()
export class UpstreamTokenEndpoint extends TokenEndpoint {
  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly host: HttpAdapterHost,
  ) {
    super();
  }

  async post(url: string, form: URLSearchParams): Promise<TokenResponse> {
    const { origin, pathname, search } = new URL(url);
    const connect = upstreamConnector({
      connectTimeoutMs: Math.min(this.env.upstreamConnectTimeoutMs, MAX_MS),
      proxyUrl: this.env.upstreamProxyUrl,
      isProxyLoop: (socket) => isProxyLoop(this.host, socket),
    });
    const client = new Client(origin, {
      connect: (options, callback) => void connect(options, callback),
      headersTimeout: Math.min(this.env.upstreamHeadersTimeoutMs, MAX_MS),
      bodyTimeout: MAX_MS,
    });
    try {
      const { statusCode, headers, body } = await client.request({
        method: 'POST',
        path: pathname + search,
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
        body: form.toString(),
        signal: AbortSignal.timeout(MAX_MS),
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
      // The sentences are about a provider's URL.
      const said = message
        .replace(/\bThe provider\b/, 'It')
        .replace(/\bthe provider\b/, 'the token endpoint');
      throw new TokenError(`the token endpoint did not respond (${code}): ${said}`, { cause: error });
    } finally {
      await client.destroy();
    }
  }
}
