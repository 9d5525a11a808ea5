// Many answers streamed at a time: opened evenly, held open, counted.
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from './connection.mjs';

const OPEN_PER_SECOND = 1_000;

export class Streams {
  open = new Set();
  /** Streams asked for, read to their end, and left before it. */
  begun = 0;
  ended = 0;
  left = 0;
  /** Bytes read. */
  bytes = 0;
  fault = null;

  /** Opens one more; `onEnd` when it has been read to its end. */
  async add(port, request, onEnd = () => {}) {
    const connection = await Connection.open(port);
    connection.onRead = (count) => (this.bytes += count);
    connection.fail = (error) => {
      this.fault ??= error;
      this.open.delete(connection);
    };
    connection.onAnswer = (status) => {
      if (status !== 200) this.fault ??= new Error(`a stream was answered with ${status}`);
      this.ended++;
      this.open.delete(connection);
      connection.close();
      onEnd();
    };
    this.open.add(connection);
    this.begun++;
    connection.send(request);
    return connection;
  }

  /** Opens so many, spread over time so that their chunks do not come in one lump. */
  async addMany(count, port, request) {
    const begin = performance.now();
    for (let i = 0; i < count; i++) {
      await this.add(port, request);
      const ahead = (i / OPEN_PER_SECOND) * 1_000 - (performance.now() - begin);
      if (ahead > 2) await sleep(ahead);
    }
  }

  /** Leaves a stream in the middle. */
  leave(connection) {
    if (!this.open.delete(connection)) return;
    this.left++;
    connection.close();
  }

  leaveAll() {
    for (const connection of this.open) this.leave(connection);
  }

  check() {
    if (this.fault !== null) throw this.fault;
  }
}
