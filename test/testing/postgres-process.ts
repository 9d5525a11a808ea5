// Uses the embedded Postgres of `postern/testing` as a test file of somebody else does, and does not end by itself.
import { createDatabase } from '../../src/testing/index.js';

const [one, other] = await Promise.all([createDatabase(), createDatabase()]);
const [found] = await one.query<{ tables: number }>(
  "SELECT count(*)::int AS tables FROM pg_class WHERE relname LIKE 'request_log_2%' AND relkind = 'r'",
);
const [place] = await other.query<{ folder: string }>("SELECT current_setting('data_directory') AS folder");
process.stdout.write(`${JSON.stringify({ urls: [one.url, other.url], ...found, ...place })}\n`);
setInterval(() => {}, 60_000);
