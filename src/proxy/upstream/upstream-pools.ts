import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Client } from 'undici';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { ConnectionLimit } from './connection-limit.js';
import { isProxyLoop } from './loop-detection.js';
import { type UpstreamConnector, upstreamConnector } from './upstream-connector.js';
import { UpstreamPool } from './upstream-pool.js';

/** Shorter than providers' idle timeouts, so that a connection is rarely reused while the provider closes it. */
const IDLE_MS = 4_000;
const MAX_IDLE_MS = 30_000;
const MAX_HEADER_BYTES = 65_536;

/** One connection pool for each provider origin. */
@Injectable()
export class UpstreamPools implements OnApplicationShutdown {
  private readonly pools = new Map<string, UpstreamPool>();
  private readonly connector: UpstreamConnector;
  private readonly limit = new ConnectionLimit();

  constructor(
    @InjectSettings() private readonly env: Settings,
    host: HttpAdapterHost,
  ) {
    this.connector = upstreamConnector({
      connectTimeoutMs: env.upstreamConnectTimeoutMs,
      proxyUrl: env.upstreamProxyUrl,
      isProxyLoop: (socket) => isProxyLoop(host, socket),
    });
  }

  /** @param origin scheme, host and port */
  for(origin: string): UpstreamPool {
    let pool = this.pools.get(origin);
    if (pool === undefined) {
      const options: Client.Options = {
        // One request at a time on a connection: with more, a lost connection would leave unknown which of them ran.
        pipelining: 1,
        allowH2: false,
        headersTimeout: this.env.upstreamHeadersTimeoutMs,
        bodyTimeout: this.env.upstreamIdleTimeoutMs,
        keepAliveTimeout: IDLE_MS,
        keepAliveMaxTimeout: MAX_IDLE_MS,
        maxHeaderSize: MAX_HEADER_BYTES,
      };
      pool = new UpstreamPool(origin, options, this.connector, this.limit, this.closeIdle);
      this.pools.set(origin, pool);
    }
    return pool;
  }

  /** Connections to providers that this process may have. */
  get most(): number {
    return this.limit.most;
  }

  /** Totals of all pools: established connections, those of them without a call, and calls waiting for a connection. */
  get counts(): { connected: number; idle: number; waiting: number } {
    const sum = { connected: 0, idle: 0, waiting: 0 };
    for (const { counts } of this.pools.values()) {
      sum.connected += counts.connected;
      sum.idle += counts.idle;
      sum.waiting += counts.waiting;
    }
    return sum;
  }

  /** If the connection limit is reached, closes an idle connection to make one for another origin possible. */
  private readonly closeIdle = (): void => {
    let connections = 0;
    for (const { size } of this.pools.values()) connections += size;
    if (connections < this.limit.most) return;
    for (const pool of this.pools.values()) if (pool.closeIdle()) return;
  };

  /** Destroys every connection and fails the calls on them. */
  async close(): Promise<void> {
    const pools = [...this.pools.values()];
    this.pools.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  onApplicationShutdown(): Promise<void> {
    return this.close();
  }
}
