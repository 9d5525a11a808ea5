import type { HttpAdapterHost } from '@nestjs/core';
import { errors, Pool } from 'undici';
import { hasRepeatedMembers } from '../bodies/repeated-members.js';
import type { Settings } from '../config/settings.js';
import { verdictOfError } from '../providers/provider-probe.js';
import { isProxyLoop } from '../proxy/upstream/loop-detection.js';
import { ForbiddenAddress, upstreamConnector } from '../proxy/upstream/upstream-connector.js';
import { signatureOf } from '../webhooks/webhook-message.js';
import { PolicyFailure, type Question, type ReceiverResponse } from './decision/rule.js';
import { MOST_AT_ONCE } from './decision/url-policy.js';
import type { PolicyTarget } from './policy-secrets.service.js';

/** Of a response. */
const MAX_BYTES = 65_536;

/**
 * Sends questions to the receiver of one policy, over connections with the same rules as for providers. Redirects are not
 * followed.
 */
export class PolicyReceiver {
  private readonly pool: Pool;
  private readonly path: string;
  private readonly secret: string;

  constructor(
    { url, secret }: PolicyTarget,
    private readonly timeoutMs: number,
    env: Settings,
    host: HttpAdapterHost,
  ) {
    const { origin, pathname, search } = new URL(url);
    const connect = upstreamConnector({
      connectTimeoutMs: Math.min(env.upstreamConnectTimeoutMs, timeoutMs),
      proxyUrl: env.upstreamProxyUrl,
      isProxyLoop: (socket) => isProxyLoop(host, socket),
    });
    this.pool = new Pool(origin, {
      connect: (options, callback) => void connect(options, callback),
      connections: MOST_AT_ONCE,
      maxResponseSize: MAX_BYTES,
    });
    this.path = pathname + search;
    this.secret = secret;
  }

  /** @throws PolicyFailure without a response with status 200 in time */
  async ask(question: Question, signal: AbortSignal): Promise<ReceiverResponse> {
    const inTime = AbortSignal.any([AbortSignal.timeout(this.timeoutMs), signal]);
    try {
      return await this.send(question, inTime);
    } catch (error) {
      if (!isClosed(error)) throw failureOf(error);
    }
    // A receiver closes connections that are idle, also while a request is on its way. The question changes nothing there.
    try {
      return await this.send(question, inTime);
    } catch (error) {
      throw failureOf(error);
    }
  }

  /** Once the requests under way have ended. */
  close(): Promise<void> {
    return this.pool.close();
  }

  private async send({ id, call, body, headers }: Question, signal: AbortSignal): Promise<ReceiverResponse> {
    const timestamp = Math.floor(Date.now() / 1_000);
    const sent = body ?? Buffer.alloc(0);
    const response = await this.pool.request({
      method: 'POST',
      path: this.path,
      headers: {
        ...headers,
        'user-agent': 'Postern',
        'x-postern-call': call,
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signatureOf(this.secret, id, timestamp, `${call}.`, sent),
      },
      body: sent,
      signal,
    });
    const { statusCode: status } = response;
    const received = Buffer.from(await response.body.arrayBuffer());
    if (status !== 200)
      throw new PolicyFailure(status >= 300 && status < 400 ? 'redirect' : 'unexpected_status');
    mustBeUnambiguous(received);
    return received;
  }
}

/** @throws PolicyFailure for JSON with a member twice, such as two decisions; what is no JSON is found with the decision */
function mustBeUnambiguous(received: Buffer): void {
  let value: unknown;
  try {
    value = JSON.parse(received.toString());
  } catch {
    return;
  }
  if (hasRepeatedMembers(received, value)) throw new PolicyFailure('invalid_decision');
}

/** The connection was closed before there was a response. */
function isClosed(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE';
}

function failureOf(error: unknown): PolicyFailure {
  if (error instanceof PolicyFailure) return error;
  if (error instanceof ForbiddenAddress) return new PolicyFailure('forbidden_address', { cause: error });
  if (error instanceof errors.ResponseExceededMaxSizeError)
    return new PolicyFailure('response_too_large', { cause: error });
  return new PolicyFailure(verdictOfError(error).code, { cause: error });
}
