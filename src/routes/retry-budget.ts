const SECONDS = 10;
const SHARE = 0.2;
const LEAST = 10;

/**
 * Limits the retries of a route: to a fifth of the calls of the last ten seconds, but always ten. Without it, retries
 * would multiply the load on providers that fail because of their load. All times are monotonic milliseconds.
 */
export class RetryBudget {
  /** By second. */
  private readonly calls = new Uint32Array(SECONDS);
  private readonly retries = new Uint32Array(SECONDS);
  private callSum = 0;
  private retrySum = 0;
  private second = 0;

  /** Counts a call. */
  called(now: number): void {
    this.moveTo(now);
    this.calls[this.second % SECONDS]!++;
    this.callSum++;
  }

  /** Takes a retry. @returns false if there is none left */
  take(now: number): boolean {
    this.moveTo(now);
    if (this.retrySum >= Math.max(LEAST, Math.floor(this.callSum * SHARE))) return false;
    this.retries[this.second % SECONDS]!++;
    this.retrySum++;
    return true;
  }

  private moveTo(now: number): void {
    const second = Math.floor(now / 1_000);
    if (second === this.second) return;
    const passed = Math.min(second - this.second, SECONDS);
    for (let i = 1; i <= passed; i++) {
      const at = (second - passed + i) % SECONDS;
      this.callSum -= this.calls[at]!;
      this.retrySum -= this.retries[at]!;
      this.calls[at] = 0;
      this.retries[at] = 0;
    }
    this.second = second;
  }
}
