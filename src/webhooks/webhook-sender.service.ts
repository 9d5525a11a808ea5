import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Client } from 'undici';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { verdictOfError } from '../providers/provider-probe.js';
import { isProxyLoop } from '../proxy/upstream/loop-detection.js';
import { ForbiddenAddress, upstreamConnector } from '../proxy/upstream/upstream-connector.js';
import type { WebhookMessage } from './webhook-message.js';

/** For the whole attempt. Below the shortest pause between two attempts, so that they do not overlap. */
export const ATTEMPT_MS = 10_000;
/** Of the response, which is not used. */
const MAX_BYTES = 65_536;

/** The result of one attempt. */
export interface Attempt {
  /** Status of the response; null without one. */
  status: number | null;
  /** Why it failed; null: it succeeded. */
  error: string | null;
}

/** Sends requests to receivers, over connections with the same rules as for providers. Redirects are not followed. */
@Injectable()
export class WebhookSender {
  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly host: HttpAdapterHost,
  ) {}

  async send(url: string, { body, headers }: WebhookMessage, signal?: AbortSignal): Promise<Attempt> {
    const connect = upstreamConnector({
      connectTimeoutMs: Math.min(this.env.upstreamConnectTimeoutMs, ATTEMPT_MS),
      proxyUrl: this.env.upstreamProxyUrl,
      isProxyLoop: (socket) => isProxyLoop(this.host, socket),
    });
    const { origin, pathname, search } = new URL(url);
    const client = new Client(origin, { connect: (options, callback) => void connect(options, callback) });
    const timeout = AbortSignal.timeout(ATTEMPT_MS);
    try {
      const response = await client.request({
        method: 'POST',
        path: pathname + search,
        headers,
        body,
        signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
      });
      const { statusCode: status } = response;
      // The status decides, also if the rest of the response does not arrive.
      await response.body.dump({ limit: MAX_BYTES }).catch(() => {});
      return { status, error: errorOfStatus(status) };
    } catch (error) {
      const code = error instanceof ForbiddenAddress ? 'forbidden_address' : verdictOfError(error).code;
      return { status: null, error: code };
    } finally {
      await client.destroy();
    }
  }
}

function errorOfStatus(status: number): string | null {
  if (status >= 200 && status < 300) return null;
  return status >= 300 && status < 400 ? 'redirect' : 'unexpected_status';
}
