import { stripVTControlCharacters } from 'node:util';
import { GATEWAY_ERROR_CODES, GatewayError } from '../../src/errors/gateway-error.js';

/** Known to test/support/jest/failures.cjs. */
const NEVER = 'This must never happen.';

const UNAVAILABLE_CODES = GATEWAY_ERROR_CODES.filter((code) => new GatewayError(code).getStatus() === 503);
/** A 503, its code or its error in what Jest says that an expectation received. */
const UNAVAILABLE = new RegExp(
  `^ *(?:\\+|Received|Re(?:solved|jected) to).*(?:(?<![\\w.-])503(?![\\w.-])|Unavailable|${UNAVAILABLE_CODES.join('|')})`,
  'm',
);

type Test = (...args: never[]) => unknown;

/**
 * In the place of `it`: the failure of this test must never happen, however busy the machine is. A wrong sum, a right that
 * nobody gave, a changed byte, a row too many or too few. If one of its expectations fails, its file has no second try
 * (scripts/test.mjs). What is only late, a time limit or a 503 in the place of what was expected, leaves it one.
 */
export const never = Object.assign(
  (name: string, test: Test, timeout?: number) => it(name, marked(test), timeout),
  {
    each: ((...cases: Parameters<jest.Each>) =>
      (name: string, test: Test, timeout?: number) =>
        it.each(...cases)(name, marked(test), timeout)) as unknown as jest.Each,
  },
);

export function marked(test: Test): (...args: unknown[]) => Promise<void> {
  return async (...args) => {
    try {
      await test(...(args as never[]));
    } catch (error) {
      if (error instanceof Error && isFinal(error)) {
        // What Jest prints is the stack, which has had its message from the beginning.
        error.stack = `${error.message}\n${NEVER}\n${error.stack?.slice(error.stack.indexOf('\n    at ')) ?? ''}`;
      }
      throw error;
    }
  };
}

/** Is it a failed expectation, or that of a property of fast-check, that met no 503? */
function isFinal(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // Where `rejects` finds that a promise was fulfilled, the value is undefined.
  if ('matcherResult' in error) return !UNAVAILABLE.test(stripVTControlCharacters(error.message));
  return isFinal(error.cause);
}
