import fc from 'fast-check';
import { FULL } from './scale.js';

/**
 * Seed of everything random in properties and in test/fuzz. Fixed in `npm test`, so that it does not fail by chance; random in
 * `npm run test:fuzz`, which prints it. With POSTERN_FUZZ_SEED the same cases run again.
 */
export const SEED = Number(process.env.POSTERN_FUZZ_SEED ?? 1);

/** Cases to run of those that `npm run test:fuzz` runs. */
export const scaled = (cases: number) => (FULL ? cases : Math.ceil(cases / 10));

interface Runs<T = unknown> {
  /** In `npm run test:fuzz`; a tenth in `npm test`. */
  numRuns?: number;
  /** Reports the first failure as it is, where each run takes long. */
  endOnFailure?: boolean;
  /** Cases that run first. */
  examples?: T[];
}

/** Checks a property of fast-check, which prints the seed with a failure. */
export function check<T>(property: fc.IAsyncProperty<T>, runs?: Runs<T>): Promise<void>;
export function check<T>(property: fc.IProperty<T>, runs?: Runs<T>): void;
export function check(property: fc.IRawProperty<unknown>, { numRuns = 100, ...rest }: Runs = {}) {
  return fc.assert(property, { ...rest, numRuns: scaled(numRuns), seed: SEED });
}

/** Values of an arbitrary: `count` of them in `npm run test:fuzz`, a tenth in `npm test`. */
export const sample = <T>(arbitrary: fc.Arbitrary<T>, count: number): T[] =>
  fc.sample(arbitrary, { numRuns: scaled(count), seed: SEED });
