/** Null if these variables are set; else which are not. */
export function unsetVariables(...names: string[]): string | null {
  const unset = names.filter((name) => !process.env[name]);
  return unset.length === 0 ? null : `not set: ${unset.join(', ')}`;
}

/**
 * A test that needs what not every machine has. If that is missing, a run of all tests leaves it out and says so; in a run of
 * chosen files or names, it fails.
 *
 * @param missing what is missing, such as "not found: nginx"; null: nothing
 */
export function itNeeding(
  missing: string | null,
  name: string,
  test: () => Promise<void>,
  timeoutMs?: number,
): void {
  if (missing === null) {
    it(name, test, timeoutMs);
  } else if (process.env.POSTERN_TESTS_CHOSEN === '1') {
    it(name, () => {
      throw new Error(`This test cannot run: ${missing}`);
    });
  } else {
    process.stdout.write(`Not run (${missing}): ${name}\n`);
    it.skip(name, test);
  }
}
