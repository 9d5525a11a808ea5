const MAX_RESPONSES = 16;
const MAX_BYTES = 65_536;

/**
 * The interim (1xx) responses to one call. Limits their number and bytes, and the time until the head of the final response:
 * undici restarts its own timer with each of them.
 */
export class InterimResponses {
  private count = 0;
  private bytes = 0;
  private deadline: NodeJS.Timeout | undefined;
  private stopped = false;

  /**
   * @param timeoutMs from the end of the request to the head of the final response; 0: no limit
   * @param onTimeout called at most once, when that time is over
   */
  constructor(
    private readonly timeoutMs: number,
    private readonly onTimeout: () => void,
  ) {}

  /**
   * Counts a response.
   *
   * @param rawHeaders flat raw headers
   * @returns false if the provider has sent too many
   */
  add(rawHeaders: readonly Buffer[]): boolean {
    this.count++;
    for (const { length } of rawHeaders) this.bytes += length;
    return this.count <= MAX_RESPONSES && this.bytes <= MAX_BYTES;
  }

  /** Starts the timer for the rest of the provider's time. @param sentAt end of the request (monotonic ms) */
  start(sentAt: number): void {
    if (this.timeoutMs === 0 || this.stopped) return;
    this.deadline = setTimeout(this.onTimeout, Math.max(0, sentAt + this.timeoutMs - performance.now()));
  }

  /** Stops the timer for good: the final response has begun, or the call is over. */
  stop(): void {
    this.stopped = true;
    clearTimeout(this.deadline);
  }
}
