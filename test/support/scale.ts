/** `npm run test:faults`: the same tests at their full size, which takes minutes. */
export const FULL = process.env.POSTERN_TEST_FULL === '1';
