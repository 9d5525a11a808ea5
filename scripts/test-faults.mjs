// `npm run test:faults`: the tests of load at their full size (10,000 aborts, 1 GB each way), and those that kill,
// freeze and starve what the request log depends on. Takes some twenty minutes.
process.env.POSTERN_TEST_FULL = '1';
process.argv.push('--config', 'jest.faults.config.js');
await import('./test.mjs');
