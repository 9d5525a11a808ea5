// The gateway as it ships, after a file that changes what Node's own modules do in its process. With `--import` or
// `--require`, it would run from dist/src and node_modules instead of the bundle (src/config/program.ts), and its start
// would take two thirds more processor time.
await import(process.env.POSTERN_TEST_PRELOAD);
await import('../../dist/src/start.js');
