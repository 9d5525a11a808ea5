import type { Decision } from './decision.js';

/** Some 2 KB each at most. */
const MAX_DECISIONS = 10_000;

interface Entry {
  readonly decision: Decision;
  /** Monotonic ms. */
  readonly until: number;
}

/** Decisions that count for calls like the one that they were made about. The least recently used are dropped first. */
export class DecisionCache {
  /** In the order of their last use. */
  private readonly entries = new Map<string, Entry>();

  constructor(private readonly most = MAX_DECISIONS) {}

  get(key: string, now = performance.now()): Decision | null {
    const entry = this.entries.get(key);
    if (entry === undefined) return null;
    this.entries.delete(key);
    if (entry.until <= now) return null;
    this.entries.set(key, entry);
    return entry.decision;
  }

  set(key: string, decision: Decision, seconds: number, now = performance.now()): void {
    this.entries.delete(key);
    this.entries.set(key, { decision, until: now + seconds * 1_000 });
    if (this.entries.size <= this.most) return;
    const [oldest] = this.entries.keys();
    this.entries.delete(oldest!);
  }
}
