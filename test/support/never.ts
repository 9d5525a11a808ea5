/** Known to test/support/jest/failures.cjs. */
const NEVER = 'This must never happen.';

/**
 * Marks a test of what must never happen, however busy the machine is: a wrong sum, a right that nobody gave, a changed
 * byte, a row too many or too few. If one of its expectations fails, its file has no second try (scripts/test.mjs). What is
 * only late, a time limit or a 503 in the place of what was expected, leaves it one.
 */
export function never<A extends unknown[]>(test: (...args: A) => unknown): (...args: A) => Promise<void> {
  return async (...args) => {
    try {
      await test(...args);
    } catch (error) {
      if (isExpectation(error) && !isUnavailable(error.matcherResult.actual)) {
        // What Jest prints is the stack, which has had its message from the beginning.
        error.stack = `${error.message}\n${NEVER}\n${error.stack?.slice(error.stack.indexOf('\n    at ')) ?? ''}`;
      }
      throw error;
    }
  };
}

function isExpectation(error: unknown): error is Error & { matcherResult: { actual: unknown } } {
  return error instanceof Error && 'matcherResult' in error;
}

/** Is it, or does it contain, the status of a gateway that gave up waiting? */
function isUnavailable(actual: unknown): boolean {
  if (typeof actual === 'object' && actual !== null) return Object.values(actual).some(isUnavailable);
  return actual === 503;
}
