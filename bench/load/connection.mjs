// One kept connection that makes one call after the other: a raw socket, so that the load costs little itself.
import { connect } from 'node:net';
import { ResponseParser } from './response-parser.mjs';

const READ_BYTES = 65_536;

/** Opens connections to a port, all at once. */
export function openConnections(port, count) {
  return Promise.all(Array.from({ length: count }, () => Connection.open(port)));
}

export class Connection {
  static open(port) {
    return new Promise((resolve, reject) => {
      const connection = new Connection(port, reject);
      connection.socket.once('connect', () => {
        connection.fail = () => {};
        resolve(connection);
      });
    });
  }

  constructor(port, fail) {
    /** Called with an Error when the connection breaks, unless it was closed here. */
    this.fail = fail;
    /** Called at the end of an answer. */
    this.onAnswer = null;
    /** Called with the number of bytes of each read. */
    this.onRead = null;
    this.closed = false;
    const parser = new ResponseParser((status, bytes) => this.onAnswer?.(status, bytes));
    this.socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      // One buffer for all reads: nothing is allocated per answer.
      onread: {
        buffer: Buffer.allocUnsafe(READ_BYTES),
        callback: (count, buffer) => {
          this.onRead?.(count);
          try {
            parser.feed(buffer.subarray(0, count));
          } catch (error) {
            this.breakOff(error);
          }
          return true;
        },
      },
    });
    this.socket.on('error', (error) => this.breakOff(error));
    this.socket.on('close', () => this.breakOff(new Error('the connection was closed')));
  }

  send(bytes) {
    this.socket.write(bytes);
  }

  close() {
    this.closed = true;
    this.socket.destroy();
  }

  breakOff(error) {
    if (this.closed) return;
    this.close();
    this.fail(error);
  }
}
