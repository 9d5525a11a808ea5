/** Failures that are this close to each other are one spell. */
const APART_MS = 10_000;

/**
 * How long something that is attempted again and again has been failing. An attempt that succeeds ends that at once, unless
 * another one fails soon after: what works only now and then does not work.
 */
export class FailingSpell {
  private since = -Infinity;
  private last = -Infinity;
  private endedAt = -Infinity;
  private isFailing = false;
  /** It has succeeded and failed again. */
  private isOnAndOff = false;

  /** @param now monotonic ms */
  failed(now = performance.now()): void {
    if (!this.isFailing) {
      this.isOnAndOff = now - this.endedAt < APART_MS;
      if (!this.isOnAndOff) this.since = now;
    }
    this.isFailing = true;
    this.last = now;
  }

  succeeded(now = performance.now()): void {
    if (this.isFailing) this.endedAt = now;
    this.isFailing = false;
  }

  /** 0 while it succeeds. */
  ms(now = performance.now()): number {
    if (this.isFailing) return now - this.since;
    return this.isOnAndOff && now - this.endedAt < APART_MS ? this.last - this.since : 0;
  }
}
