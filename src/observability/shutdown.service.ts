import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { GatewayHttpAdapter } from '../proxy/http/gateway-http.adapter.js';
import { UpstreamPools } from '../proxy/upstream/upstream-pools.js';
import { RequestLogService } from '../request-log/request-log.service.js';

const POLL_MS = 20;
/** A call whose connection was cut ends within a turn or two of the event loop; this only bounds a bug of ours. */
const CUT_MS = 5_000;
const QUIET_MS = 0.2;
const QUIET_TURNS = 200;

/**
 * Waits for a turn of the event loop with little to do. Connections that the system has made and this process has not
 * accepted are reset when the port is closed, calls included; at the end of such a turn there are hardly any.
 */
async function quiet(): Promise<void> {
  for (let turn = 0; turn < QUIET_TURNS; turn++) {
    const begun = performance.now();
    await nextTurn();
    if (performance.now() - begun < QUIET_MS) return;
  }
}

/** Brings the gateway to rest: no call is refused before it must be, none is cut before the grace is over. */
@Injectable()
export class ShutdownService {
  draining = false;
  private readonly logger = new Logger('Shutdown');

  constructor(
    private readonly host: HttpAdapterHost<GatewayHttpAdapter>,
    private readonly log: RequestLogService,
    private readonly pools: UpstreamPools,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /**
   * Ready says 503 and calls are still served for the delay, so that load balancers look away; then the port is closed
   * and calls in flight have the grace to end. What is left is cut and recorded as interrupted.
   *
   * @param atOnce without the delay and the grace
   */
  async drain({ atOnce }: { atOnce: boolean }): Promise<void> {
    const adapter = this.host.httpAdapter;
    const { shutdownDelayMs, shutdownGraceMs } = this.env;
    this.draining = true;
    this.logger.log(`Stopping; requests under way: ${adapter.openRequests}.`);
    adapter.draining = true;
    if (!atOnce) await sleep(shutdownDelayMs);
    await quiet();
    for (const server of adapter.servers) server.close();
    const deadline = performance.now() + (atOnce ? 0 : shutdownGraceMs);
    // A call can outlive its client's request, for whoever repeats it.
    const open = () => Math.max(adapter.openRequests, this.log.underWay);
    while (open() > 0 && performance.now() < deadline) await sleep(POLL_MS);
    if (open() > 0) {
      this.logger.warn(`${open()} calls did not end within the grace and are cut.`);
      this.log.interruptOpenCalls();
    }
    for (const server of adapter.servers) server.closeAllConnections();
    // The calls learn of their lost clients first: what the provider's side says afterwards is an echo.
    await sleep(0);
    await this.pools.close();
    // The rows of the calls just cut come a few turns later; the log is closed behind us and must have them by then.
    const bound = performance.now() + CUT_MS;
    while (this.log.underWay > 0 && performance.now() < bound) await sleep(POLL_MS);
  }
}
