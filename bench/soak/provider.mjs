// A provider that reads each request to its end, and whose response depends on all of its bytes:
//   "stream":true    events, EVERY_MS apart, the last with usage
//   otherwise        a chat completion with usage
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { answerOf, eventsOf, EVERY_MS } from './responses.mjs';

const server = createServer((request, response) => {
  const hash = createHash('sha256');
  let isStreamed = null;
  request.on('data', (chunk) => {
    isStreamed ??= chunk.includes('"stream":true');
    hash.update(chunk);
  });
  request.on('end', () => {
    const id = hash.digest('hex');
    if (!isStreamed) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(answerOf(id));
      return;
    }
    const events = eventsOf(id);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const timer = setInterval(() => {
      response.write(events.shift());
      if (events.length > 0) return;
      clearInterval(timer);
      response.end();
    }, EVERY_MS);
    response.on('close', () => clearInterval(timer));
  });
});
server.keepAliveTimeout = 75_000;
server.listen(0, '127.0.0.1', 4_096, () => process.stdout.write(`listening on ${server.address().port}\n`));
// Started by the benchmark alone: when that has died, nobody else would end this.
process.stdin.on('end', () => process.exit(0)).resume();
process.on('SIGTERM', () => process.exit(0));
