const FAILURES_IN_A_ROW = 3;
const FIRST_REST_MS = 5_000;
const LEAST_MS = 1_000;
const MAX_MS = 60_000;
/** A call that probes a target may take minutes to show anything. After this time another one probes it too. */
const PROBE_MS = 10_000;

/**
 * Whether calls should be sent to a target, as this process has seen it respond. A target that refused a call rests for
 * as long as it says; one that failed three times in a row rests for 5 seconds, then twice as long each time. After its
 * rest one call probes it; the others avoid it until that call has a response, for at most 10 seconds. All times are
 * monotonic milliseconds.
 */
export class TargetHealth {
  private failures = 0;
  /** 0: it does not rest. */
  private restUntil = 0;
  private lastRestMs = 0;
  /** Other calls avoid it until then, or until the call that probes it has shown something; 0: no call does. */
  private probedUntil = 0;
  private rests = 0;

  isAvailable(now: number): boolean {
    return this.restUntil === 0 || now >= Math.max(this.restUntil, this.probedUntil);
  }

  /** For how long it gets no calls, in ms; 0 if it gets some. */
  restsFor(now: number): number {
    return this.restUntil === 0 ? 0 : Math.max(0, this.restUntil - now);
  }

  /** A call is sent to it. @returns a number to report its response with */
  begin(now: number): number {
    if (this.restUntil !== 0 && now >= this.restUntil) this.probedUntil = now + PROBE_MS;
    return this.rests;
  }

  /** The response shows that it serves calls. A call from before its rest shows nothing. */
  succeeded(begun: number): void {
    if (begun !== this.rests) return;
    this.failures = 0;
    this.restUntil = 0;
    this.lastRestMs = 0;
    this.probedUntil = 0;
  }

  /** It takes no calls at the moment. @param retryAfterMs for how long, from the response; null: it has no such header */
  refused(begun: number, now: number, retryAfterMs: number | null): void {
    if (retryAfterMs === null) this.failed(begun, now);
    else this.rest(now, Math.min(Math.max(retryAfterMs, LEAST_MS), MAX_MS));
  }

  failed(begun: number, now: number): void {
    // Calls that began before its rest fail together, and are one failure.
    if (begun !== this.rests) return;
    this.failures++;
    if (this.failures < FAILURES_IN_A_ROW) {
      this.probedUntil = 0;
      if (this.lastRestMs === 0) return;
    }
    this.lastRestMs = this.lastRestMs === 0 ? FIRST_REST_MS : Math.min(this.lastRestMs * 2, MAX_MS);
    this.rest(now, this.lastRestMs);
  }

  /** The call ended without showing anything about the target. */
  ended(begun: number): void {
    if (begun === this.rests) this.probedUntil = 0;
  }

  private rest(now: number, ms: number): void {
    this.restUntil = Math.max(this.restUntil, now + ms);
    this.probedUntil = 0;
    this.rests++;
  }
}

/** Milliseconds that a response asks to wait; null if it does not say. @param now Unix milliseconds */
export function retryAfterOf(
  milliseconds: string | undefined,
  retryAfter: string | undefined,
  now: number,
): number | null {
  if (milliseconds !== undefined && /^\d{1,9}(\.\d+)?$/.test(milliseconds)) return Number(milliseconds);
  if (retryAfter === undefined) return null;
  if (/^\d{1,9}(\.\d+)?$/.test(retryAfter)) return Number(retryAfter) * 1_000;
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
