/** Known to test/support/jest/environment.cjs. */
declare global {
  var runAfterFile: Set<() => Promise<void>> | undefined;
}

/**
 * Registers what ends things that a test file has started and not ended, such as one whose `beforeAll` failed. It runs
 * after every file: the files that one worker runs share this module. (Hooks such as `afterAll` would belong to the first
 * of these files alone.)
 */
export function afterFile(run: () => Promise<void>): void {
  globalThis.runAfterFile ??= new Set();
  globalThis.runAfterFile.add(run);
}
