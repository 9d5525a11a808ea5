/** A bounded number of slots. Who finds none free waits, in the order of arrival. */
export class Slots {
  private used = 0;
  private readonly waiters = new Set<() => void>();

  constructor(private readonly size: number) {}

  get taken(): number {
    return this.used;
  }

  get waiting(): number {
    return this.waiters.size;
  }

  /** @returns false if none became free in time, or before the signal */
  take(maxMs: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.used < this.size) {
      this.used++;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const end = (isTaken: boolean) => {
        this.waiters.delete(onFree);
        clearTimeout(timer);
        signal.removeEventListener('abort', giveUp);
        resolve(isTaken);
      };
      const onFree = () => end(true);
      const giveUp = () => end(false);
      const timer = setTimeout(giveUp, maxMs);
      signal.addEventListener('abort', giveUp);
      this.waiters.add(onFree);
    });
  }

  release(): void {
    const [next] = this.waiters;
    if (next === undefined) this.used--;
    else next();
  }
}
