// Loaded into the gateway before anything else (node --expose-gc --import): what is on its heap once garbage is collected.
// Served by HTTP at the address in HEAP_FILE.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

const server = createServer((_req, res) => {
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  res.end(String(heapUsed + external));
});
server.listen(0, '127.0.0.1', () =>
  writeFileSync(process.env.HEAP_FILE, `http://127.0.0.1:${server.address().port}/`),
);
server.unref();
