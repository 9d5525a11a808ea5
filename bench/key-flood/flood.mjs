// A flood of keys nobody issued, over kept connections and from a process of its own; each key is another. With a rate:
// so many calls a second are due, as far as connections are free. Without: each connection sends when it got its answer.
import { connect } from 'node:net';
import { generateKey } from '../../dist/src/keys/key-secret.js';

const CONNECTIONS = 64;
const port = Number(process.argv[2]);

let flood = null;
let statuses = {};
let credit = 0;
const idle = [];

const part = () => Math.floor(Math.random() * 256);
/** The last character is part of the checksum. */
const spoilt = (key) => key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');

function request() {
  const key = flood.keys === 'junk' ? spoilt(generateKey()) : generateKey();
  const address = flood.address ?? `10.${part()}.${part()}.${part()}`;
  return `GET /v1/models HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${key}\r\nX-Forwarded-For: ${address}\r\n\r\n`;
}

function next(socket) {
  if (flood === null || (flood.rate !== null && credit < 1)) return void idle.push(socket);
  if (flood.rate !== null) credit--;
  socket.write(request());
}

function open() {
  const socket = connect(port, '127.0.0.1', () => next(socket)).setNoDelay();
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk;
    const head = text.indexOf('\r\n\r\n');
    if (head === -1) return;
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0);
    if (text.length < head + 4 + length) return;
    const status = text.slice(9, 12);
    statuses[status] = (statuses[status] ?? 0) + 1;
    text = '';
    next(socket);
  });
  socket.on('error', () => socket.destroy());
  socket.on('close', () => {
    const at = idle.indexOf(socket);
    if (at !== -1) idle.splice(at, 1);
    statuses.closed = (statuses.closed ?? 0) + 1;
    open();
  });
}
for (let i = 0; i < CONNECTIONS; i++) open();

function send() {
  for (const socket of idle.splice(0)) next(socket);
}

process.on('message', ({ forMs, ...order }) => {
  flood = order;
  statuses = {};
  const start = performance.now();
  let taken = 0;
  credit = 0;
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - start) / 1_000) * (flood.rate ?? 0));
    credit += due - taken;
    taken = due;
    send();
  }, 2);
  send();
  setTimeout(() => {
    clearInterval(timer);
    flood = null;
    process.send({ statuses, ms: performance.now() - start });
  }, forMs);
});
process.on('disconnect', () => process.exit(0));
