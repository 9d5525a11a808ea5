// `npm run test:faults`: the tests of load at their full size (10,000 aborts, 1 GB each way). Takes some minutes.
process.env.POSTERN_TEST_FULL = '1';
process.argv.push('test/wire/aborts', 'test/wire/flat-memory');
await import('./test.mjs');
