// Large request bodies on their way, while the provider does not read yet.
import { once } from 'node:events';
import { Connection } from './connection.mjs';

const CHUNK = Buffer.alloc(65_536, 'x');
const PATIENCE_MS = 30_000;

/** Sends one body of `bytes`, no faster than the gateway takes it, and waits for the answer. */
export async function upload(port, head, bytes) {
  const connection = await Connection.open(port);
  const answered = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('an upload was not answered in time')), PATIENCE_MS);
    connection.fail = reject;
    connection.onAnswer = (status) => {
      clearTimeout(timer);
      if (status === 200) resolve();
      else reject(new Error(`an upload was answered with ${status}`));
    };
  });
  answered.catch(() => {}); // reported below
  const { socket } = connection;
  try {
    socket.write(head);
    for (let left = bytes; left > 0 && !connection.closed; left -= CHUNK.length) {
      const more = socket.write(CHUNK.subarray(0, Math.min(left, CHUNK.length)));
      if (!more) await Promise.race([once(socket, 'drain'), answered]);
    }
    await answered;
  } finally {
    connection.close();
  }
}
