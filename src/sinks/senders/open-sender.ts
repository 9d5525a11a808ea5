import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { isProxyLoop } from '../../proxy/upstream/loop-detection.js';
import { upstreamConnector } from '../../proxy/upstream/upstream-connector.js';
import type { SinkAccess } from '../sink-secrets.service.js';
import type { SinkKind } from '../sink.entity.js';
import { HttpSender } from './http-sender.js';
import type { SinkSender } from './sink-sender.js';

/** Opens connections to sinks, with the same rules as for providers. */
@Injectable()
export class SinkSenders {
  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly host: HttpAdapterHost,
  ) {}

  /** Connects and checks that the sink can take rows. The clients are loaded here, so that only sinks pay for them. */
  async open(kind: SinkKind, access: SinkAccess, target: string | null): Promise<SinkSender> {
    void target;
    if (kind !== 'http') throw new Error(`sinks of the kind ${kind} come later`);
    return Promise.resolve(new HttpSender(access, this.connector()));
  }

  private connector() {
    return upstreamConnector({
      connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
      proxyUrl: this.env.upstreamProxyUrl,
      isProxyLoop: (socket) => isProxyLoop(this.host, socket),
    });
  }
}
