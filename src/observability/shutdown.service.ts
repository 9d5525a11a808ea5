import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { GatewayHttpAdapter } from '../proxy/http/gateway-http.adapter.js';
import { UpstreamPools } from '../proxy/upstream/upstream-pools.js';
import { WebSocketSessions } from '../proxy/websocket/websocket-sessions.service.js';
import { RequestLogService } from '../request-log/request-log.service.js';
import { patience } from '../platform/patience.js';

const POLL_MS = 20;
/** A call whose connection was cut ends within a tick or two of the event loop; this limit only matters for a bug. */
const CUT_OFF = patience('calls that were cut off', 5_000);
const QUIET_MS = 0.2;
const QUIET_TICKS = 200;

/**
 * Waits for an event-loop tick with little to do. Closing the port resets connections that the kernel has established and
 * this process has not accepted, with their calls; after such a tick there are hardly any.
 */
async function quiet(): Promise<void> {
  for (let tick = 0; tick < QUIET_TICKS; tick++) {
    const begun = performance.now();
    await nextTick();
    if (performance.now() - begun < QUIET_MS) return;
  }
}

/** Drains the gateway: it rejects calls as late as possible and cuts none before the grace is over. */
@Injectable()
export class ShutdownService {
  draining = false;
  private readonly logger = new Logger('Shutdown');

  constructor(
    private readonly host: HttpAdapterHost<GatewayHttpAdapter>,
    private readonly log: RequestLogService,
    private readonly pools: UpstreamPools,
    private readonly webSockets: WebSocketSessions,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /**
   * During the delay readiness returns 503 and calls are still served, so that load balancers stop sending traffic. Then
   * the port is closed and calls in flight may finish within the grace. The rest is cut off and recorded as interrupted.
   *
   * @param atOnce without the delay and the grace
   */
  async drain({ atOnce }: { atOnce: boolean }): Promise<void> {
    const adapter = this.host.httpAdapter;
    const { shutdownDelayMs, shutdownGraceMs } = this.env;
    this.draining = true;
    // A start that failed says why.
    if (!atOnce) this.logger.log(`Stopping; ${adapter.openRequests} requests in flight.`);
    adapter.draining = true;
    if (!atOnce) await sleep(shutdownDelayMs);
    await quiet();
    for (const server of adapter.servers) server.close();
    const deadline = performance.now() + (atOnce ? 0 : shutdownGraceMs);
    // A call can outlive its client's request, so that a duplicate request gets the response.
    const open = () => Math.max(adapter.openRequests, this.log.openCount);
    while (open() > 0 && performance.now() < deadline) {
      this.webSockets.closeQuiet(deadline);
      await sleep(POLL_MS);
    }
    this.webSockets.closeQuiet(-Infinity);
    if (open() > 0) {
      this.logger.warn(`${open()} calls did not finish within SHUTDOWN_GRACE_MS and were cut off.`);
      this.log.interruptOpenCalls();
    }
    for (const server of adapter.servers) server.closeAllConnections();
    // The calls see their lost clients first, so that errors of the provider side are not taken for the cause.
    await sleep(0);
    await this.pools.close();
    // The rows of the last calls, and of those that were cut, follow with their token counts; the log must have them before it is closed.
    const bound = performance.now() + CUT_OFF.ms;
    while (this.log.underWay > 0 && performance.now() < bound) await sleep(POLL_MS);
  }
}
