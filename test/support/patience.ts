/** Read by src/platform/patience.ts. test/support/jest/environment.cjs sets it before each file. */
const FACTORS = Symbol.for('postern.patience');
const holder = globalThis as { [FACTORS]?: Record<string, number> };

/**
 * Changes how long the product waits before it gives up, up to the end of the file: here, where a value that was read
 * before stays (of pools that are open), and in processes that are started from here on. Without it, time limits are 20 times
 * as long as in production, so that a busy machine does not reach them.
 *
 * @param factor of production; a file about a limit sets 1, or less, for that limit
 * @param names as declared (test/platform/patience.test.ts compares them); none: all
 * @returns puts back what was before
 */
export function setPatience(factor: number, ...names: string[]): () => void {
  const before = holder[FACTORS]!;
  holder[FACTORS] =
    names.length === 0
      ? { '*': factor }
      : { ...before, ...Object.fromEntries(names.map((name) => [name, factor])) };
  return () => (holder[FACTORS] = before);
}

/** For a process that is started with patience-preload.mjs. */
export function patienceVariables(): { POSTERN_TEST_PATIENCE: string } {
  return { POSTERN_TEST_PATIENCE: JSON.stringify(holder[FACTORS]) };
}
