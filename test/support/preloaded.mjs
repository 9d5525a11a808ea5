// A program as it ships, as patient as its test, and after a file that changes what Node's own modules do in its process.
// With `--import` or `--require`, it would run from dist/src and node_modules instead of the bundle (src/config/program.ts),
// and its start would take two thirds more processor time.
import { pathToFileURL } from 'node:url';
import './patience-preload.mjs';

const { POSTERN_TEST_PRELOAD, POSTERN_TEST_PROGRAM } = process.env;
if (POSTERN_TEST_PRELOAD !== undefined) await import(POSTERN_TEST_PRELOAD);
await import(pathToFileURL(POSTERN_TEST_PROGRAM).href);
