/** The clock of Postgres as this process knows it: slots of rates begin and end by it on every replica. */
export class PostgresClock {
  /** Epoch milliseconds minus monotonic ones: at least and at most. */
  private lowest = performance.timeOrigin;
  private highest = performance.timeOrigin;
  /** When the last message began to which Postgres responded (monotonic ms). */
  heardAt = -Infinity;

  /** Postgres read its clock between these monotonic times. */
  set(epochMs: number, sentAt: number, receivedAt: number): void {
    this.lowest = epochMs - receivedAt;
    this.highest = epochMs - sentAt;
    this.heardAt = sentAt;
  }

  /** The slot at a monotonic time. */
  slot(now: number, slotMs: number): number {
    return Math.floor((now + this.highest) / slotMs);
  }

  /** The monotonic time before which Postgres's clock cannot have reached this. */
  earliestLocal(epochMs: number): number {
    return epochMs - this.highest;
  }

  /** The monotonic time by which Postgres's clock has reached this. */
  latestLocal(epochMs: number): number {
    return epochMs - this.lowest;
  }
}
