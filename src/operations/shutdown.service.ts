import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { InjectEnv } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { GatewayHttpAdapter } from '../proxy/gateway-http.adapter.js';
import { RequestLogService } from '../request-log/request-log.service.js';

const POLL_MS = 20;
/** A call whose connection was cut ends within a turn or two of the event loop; this only bounds a bug of ours. */
const CUT_MS = 5_000;

/** Brings the gateway to rest: no call is refused before it must be, none is cut before the grace is over. */
@Injectable()
export class ShutdownService {
  draining = false;
  private readonly logger = new Logger('Shutdown');

  constructor(
    private readonly host: HttpAdapterHost<GatewayHttpAdapter>,
    private readonly log: RequestLogService,
    @InjectEnv() private readonly env: Settings,
  ) {}

  /**
   * Ready says 503 and calls are still served for the delay, so that load balancers look away; then the port is closed
   * and calls in flight have the grace to end. What is left is cut and recorded as interrupted.
   */
  async drain(): Promise<void> {
    const adapter = this.host.httpAdapter;
    this.draining = true;
    adapter.draining = true;
    await sleep(this.env.shutdownDelayMs);
    for (const server of adapter.servers) server.close();
    const deadline = performance.now() + this.env.shutdownGraceMs;
    while (adapter.openRequests > 0 && performance.now() < deadline) await sleep(POLL_MS);
    if (adapter.openRequests > 0) {
      this.logger.warn(`${adapter.openRequests} calls did not end within the grace and are cut.`);
      this.log.interruptOpenCalls();
    }
    for (const server of adapter.servers) server.closeAllConnections();
    // The rows of the calls just cut come a few turns later; the log is closed behind us and must have them by then.
    const bound = performance.now() + CUT_MS;
    while (this.log.underWay > 0 && performance.now() < bound) await sleep(POLL_MS);
  }
}
