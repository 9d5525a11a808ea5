import type { Random } from './random.js';

/** What has parted two HTTP parsers before. */
const TOKENS = [
  ...['\r\n', '\n', '\r', '\r\n\r\n', '\n\n', '\r\r\n', ' ', '\t', '\0', '\x0b', '\x7f', '\x80', '\xff', ':', ';', ',', '%', '#'],
  ...['Content-Length: 5\r\n', 'Content-Length: 0\r\n', 'Content-Length:\r\n', 'Content-Length: +1\r\n', 'content-length: 99999999999999999999\r\n'],
  ...['Transfer-Encoding: chunked\r\n', 'Transfer-Encoding: gzip, chunked\r\n', 'transfer-encoding: identity\r\n', 'Transfer-Encoding : chunked\r\n'],
  ...['Connection: close\r\n', 'Connection: upgrade\r\nUpgrade: h2c\r\n', 'Connection: keep-alive, content-length\r\n', 'Keep-Alive: timeout=0\r\n'],
  ...['Host: other\r\n', 'Authorization: Bearer x\r\n', 'Expect: 100-continue\r\n', 'Expect: x\r\n', 'Trailer: x\r\n', ' folded\r\n', '\tfolded\r\n'],
  ...['0\r\n\r\n', '5\r\nhello\r\n', '0\r\nX: y\r\n\r\n', '5;a=b\r\n', 'ffffffffffffffff\r\n', '-1\r\n', '0x5\r\n'],
  ...['HTTP/1.1', 'HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', ' HTTP/1.1\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ...['HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n', '204', '304', '100', '099', '999'],
  ...['GET ', 'HEAD ', 'POST ', 'CONNECT ', 'TRACE ', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '/../', '%2e%2e/', '//', 'http://other/', '*'],
].map((token) => Buffer.from(token, 'latin1')); // oxfmt-ignore

type Mutation = (bytes: Buffer, random: Random, other: Buffer) => Buffer;

const insert = (bytes: Buffer, at: number, what: Buffer) =>
  Buffer.concat([bytes.subarray(0, at), what, bytes.subarray(at)]);

function range(bytes: Buffer, random: Random): [from: number, to: number] {
  const from = random.below(bytes.length + 1);
  return [from, Math.min(bytes.length, from + random.below(40))];
}

/** Somewhere in the bytes, or right behind one of their line ends, where it does the most harm. */
function somewhere(bytes: Buffer, random: Random): number {
  if (random.below(2) === 0) return random.below(bytes.length + 1);
  const at = bytes.indexOf('\r\n', random.below(bytes.length + 1));
  return at === -1 ? bytes.length : at + 2;
}

const MUTATIONS: Mutation[] = [
  function flipBit(bytes, random) {
    const out = Buffer.from(bytes);
    if (out.length > 0) out[random.below(out.length)]! ^= 1 << random.below(8);
    return out;
  },
  function setByte(bytes, random) {
    const out = Buffer.from(bytes);
    if (out.length > 0) out[random.below(out.length)] = random.below(256);
    return out;
  },
  function remove(bytes, random) {
    const [from, to] = range(bytes, random);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]);
  },
  function repeat(bytes, random) {
    const [from, to] = range(bytes, random);
    return insert(bytes, to, bytes.subarray(from, to));
  },
  function move(bytes, random) {
    const [from, to] = range(bytes, random);
    const rest = Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]);
    return insert(rest, somewhere(rest, random), bytes.subarray(from, to));
  },
  function truncate(bytes, random) {
    return bytes.subarray(0, random.below(bytes.length + 1));
  },
  function splice(bytes, random, other) {
    return Buffer.concat([
      bytes.subarray(0, random.below(bytes.length + 1)),
      other.subarray(random.below(other.length + 1)),
    ]);
  },
  function append(bytes, _random, other) {
    return Buffer.concat([bytes, other]);
  },
  function loseCarriageReturn(bytes, random) {
    const at = bytes.indexOf('\r', random.below(bytes.length + 1));
    return at === -1 ? bytes : Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]);
  },
  (bytes, random) => insert(bytes, somewhere(bytes, random), random.pick(TOKENS)),
  (bytes, random) => insert(bytes, somewhere(bytes, random), random.pick(TOKENS)),
  (bytes, random) => insert(bytes, somewhere(bytes, random), random.pick(TOKENS)),
];

/** One to four mutations of one valid message, with another at hand to splice with. */
export function mutate(bytes: Buffer, other: Buffer, random: Random): Buffer {
  let out = bytes;
  for (let count = 1 + random.below(4); count > 0; count--) out = random.pick(MUTATIONS)(out, random, other);
  return out;
}
