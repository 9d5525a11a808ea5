import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Of one worker of Jest, so that no other one takes a port between two of its uses. */
const SHARE = 700;
/**
 * Below the ephemeral range: no connection and no server on port 0 takes them. Also below those of the embedded Postgres, and
 * without 10080, to which fetch sends nothing.
 */
const FIRST = 10_100 + SHARE * ((Number(process.env.JEST_WORKER_ID ?? 1) - 1) % 8);

let offset = randomInt(SHARE);

/**
 * A port that nothing uses, for what must be told its port before it listens, comes back on the same port, or shall find nobody
 * there. Everything else listens on port 0, and passes on the one that it got.
 */
export async function unusedPort(): Promise<number> {
  for (;;) {
    offset = (offset + 1) % SHARE;
    const port = FIRST + offset;
    const probe = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
}
