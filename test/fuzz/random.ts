import { SEED } from '../support/property.js';

/** Random choices that are the same for the same seed. */
export class Random {
  private state: number;

  constructor(readonly seed = SEED) {
    this.state = seed >>> 0;
  }

  /** mulberry32: small, seedable, good enough to choose mutations. */
  private next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** An integer from 0 to below the bound. */
  below(bound: number): number {
    return Math.floor((this.next() / 2 ** 32) * bound);
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)]!;
  }
}
