// Where does an HTTP/1.1 answer end? As little parsing as that takes: the load generator must cost less than what it
// measures. Pure: the tests in test/bench are on it.

const HEAD_END = Buffer.from('\r\n\r\n');
const LINE_END = Buffer.from('\r\n');
const LENGTH = /\r\ncontent-length: *(\d+)/i;
const CHUNKED = /\r\ntransfer-encoding: *chunked/i;
const NOTHING = Buffer.alloc(0);

/** Reads the answers of one connection; `onEnd(status, bodyBytes)` is called at the end of each. */
export class ResponseParser {
  /** What was read of a head or of a chunk's size line, until the rest has come. */
  rest = NOTHING;
  state = 'head';
  status = 0;
  bodyBytes = 0;
  /** Bytes of body, of a chunk with its line end, or of what follows the last chunk, that are still to come. */
  left = 0;

  constructor(onEnd) {
    this.onEnd = onEnd;
  }

  /** @param chunk may be reused by the caller afterwards: what must be kept is copied */
  feed(chunk) {
    let bytes = this.rest.length > 0 ? Buffer.concat([this.rest, chunk]) : chunk;
    this.rest = NOTHING;
    while (bytes.length > 0) {
      const used = this[this.state](bytes);
      if (used === 0) {
        this.rest = Buffer.from(bytes);
        return;
      }
      bytes = bytes.subarray(used);
    }
  }

  // Each takes what it can from the beginning of the bytes and says how many that were; 0: more must come first.

  head(bytes) {
    const end = bytes.indexOf(HEAD_END);
    if (end === -1) return 0;
    const text = bytes.latin1Slice(0, end);
    this.status = Number(text.slice(9, 12));
    // 1xx: the answer is still to come.
    if (this.status < 200) return end + 4;
    this.bodyBytes = 0;
    const length = LENGTH.exec(text);
    if (length !== null) {
      this.left = Number(length[1]);
      this.state = 'body';
      if (this.left === 0) this.finish();
    } else if (CHUNKED.test(text)) {
      this.state = 'size';
    } else if (this.status === 204 || this.status === 304) {
      this.finish();
    } else {
      throw new Error(`an answer without a length:\n${text}`);
    }
    return end + 4;
  }

  body(bytes) {
    const used = Math.min(bytes.length, this.left);
    this.bodyBytes += used;
    this.left -= used;
    if (this.left === 0) this.finish();
    return used;
  }

  size(bytes) {
    const end = bytes.indexOf(LINE_END);
    if (end === -1) return 0;
    const size = parseInt(bytes.latin1Slice(0, end), 16);
    if (Number.isNaN(size)) throw new Error('a chunk without a size');
    this.left = size + 2;
    this.state = size === 0 ? 'last' : 'chunk';
    return end + 2;
  }

  chunk(bytes) {
    const used = Math.min(bytes.length, this.left);
    // The last two are the chunk's line end.
    this.bodyBytes += Math.max(0, Math.min(used, this.left - 2));
    this.left -= used;
    if (this.left === 0) this.state = 'size';
    return used;
  }

  /** No trailers: nothing here sends any. */
  last(bytes) {
    const used = Math.min(bytes.length, this.left);
    this.left -= used;
    if (this.left === 0) this.finish();
    return used;
  }

  finish() {
    this.state = 'head';
    this.onEnd(this.status, this.bodyBytes);
  }
}
