// A provider that parses as little as it can: of heads the Content-Length, with one write for each response or chunk.
//   POST …                         the fixed answer
//   POST …?chunks=N&every=MS       N events, MS apart, each in a write of its own; one more says [DONE]. 0: all in one write
//   POST …?delay=MS                the fixed answer, so many milliseconds after the request
//   POST …?hold=MS                 the body is not read for so long, then to its end, then the fixed answer
import { createServer } from 'node:net';
import { ANSWER, EVENT } from './answer.mjs';

const HEAD_END = Buffer.from('\r\n\r\n');
const WHOLE = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(ANSWER)}\r\n\r\n${ANSWER}`,
);
const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
const chunked = (text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const CHUNK = Buffer.from(chunked(EVENT));
const LAST = Buffer.from(`${chunked('data: [DONE]\n\n')}0\r\n\r\n`);

const server = createServer({ noDelay: true }, (socket) => {
  let rest = null;
  /** Bytes of the body under way that are still to come. */
  let left = 0;
  let answer = null;
  let timer = null;
  socket.on('error', () => socket.destroy());
  socket.on('close', () => clearInterval(timer));
  socket.on('data', (chunk) => {
    let bytes = rest === null ? chunk : Buffer.concat([rest, chunk]);
    rest = null;
    while (bytes.length > 0) {
      if (answer === null) {
        const end = bytes.indexOf(HEAD_END);
        if (end === -1) {
          rest = bytes;
          return;
        }
        const head = bytes.latin1Slice(0, end);
        left = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
        bytes = bytes.subarray(end + 4);
        answer = answerTo(head.slice(0, head.indexOf('\r\n')));
      }
      const used = Math.min(left, bytes.length);
      left -= used;
      bytes = bytes.subarray(used);
      if (left === 0) {
        const run = answer;
        answer = null;
        run();
      }
    }
  });

  function answerTo(line) {
    const stream = /chunks=(\d+)&every=(\d+)/.exec(line);
    if (stream !== null) return () => sendStream(Number(stream[1]), Number(stream[2]));
    const delay = /delay=(\d+)/.exec(line);
    if (delay !== null) return () => setTimeout(() => socket.write(WHOLE), Number(delay[1]));
    const hold = /hold=(\d+)/.exec(line);
    if (hold !== null) {
      socket.pause();
      setTimeout(() => socket.resume(), Number(hold[1]));
    }
    return () => socket.write(WHOLE);
  }

  function sendStream(chunks, everyMs) {
    let sent = 0;
    socket.write(STREAM_HEAD);
    if (everyMs === 0) {
      socket.write(Buffer.concat([...Array(chunks).fill(CHUNK), LAST]));
      return;
    }
    timer = setInterval(() => {
      if (sent++ < chunks) socket.write(CHUNK);
      else {
        clearInterval(timer);
        socket.write(LAST);
      }
    }, everyMs);
  }
});
server.listen(0, '127.0.0.1', 4_096, () => process.stdout.write(`listening on ${server.address().port}\n`));
// Started by the benchmark alone: when that has died, nobody else would end this.
process.stdin.on('end', () => process.exit(0)).resume();
process.on('SIGTERM', () => process.exit(0));
