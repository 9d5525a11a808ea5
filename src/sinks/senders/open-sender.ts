import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { isProxyLoop } from '../../proxy/upstream/loop-detection.js';
import { type UpstreamConnector, upstreamConnector } from '../../proxy/upstream/upstream-connector.js';
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

  /**
   * Connects and checks that the sink can take rows. The clients are loaded here, so that only sinks pay for them.
   *
   * @throws SinkError
   */
  async open(kind: SinkKind, access: SinkAccess, target: string | null): Promise<SinkSender> {
    switch (kind) {
      case 'clickhouse': {
        const { ClickHouseSender } = await import('./clickhouse-sender.js');
        return ClickHouseSender.open(access, target!, this.connector());
      }
      case 'jetstream': {
        const { JetStreamSender } = await import('./jetstream-sender.js');
        return JetStreamSender.open(access, target!);
      }
      case 'http':
        return new HttpSender(access, this.connector());
    }
  }

  /** Also for readers of a sink. */
  connector(): UpstreamConnector {
    return upstreamConnector({
      connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
      proxyUrl: this.env.upstreamProxyUrl,
      isProxyLoop: (socket) => isProxyLoop(this.host, socket),
    });
  }
}
