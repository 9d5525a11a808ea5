import type { Logger } from '@nestjs/common';

const REMIND_MS = 60_000;

/** Logs each reason of an outage once, and again once a minute while it lasts. */
export class OutageLog {
  private last = { reason: '', at: 0 };

  constructor(private readonly logger: Logger) {}

  /** @param what is delayed by it */
  report(what: string, reason: string): void {
    const now = performance.now();
    if (reason === this.last.reason && now - this.last.at < REMIND_MS) return;
    this.last = { reason, at: now };
    this.logger.warn(`${what}: ${reason}`);
  }

  /** @param message logged if an outage was */
  ended(message: string): void {
    if (this.last.reason !== '') this.logger.log(message);
    this.last = { reason: '', at: 0 };
  }
}
