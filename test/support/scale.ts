/** `npm run test:faults` and `npm run test:fuzz`: the same tests at their full size, which takes minutes. */
export const FULL = process.env.POSTERN_TEST_FULL === '1';
