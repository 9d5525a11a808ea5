import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** A port that nothing uses, below the ephemeral range: no connection and no server on port 0 takes it meanwhile. */
export async function unusedPort(): Promise<number> {
  for (;;) {
    const port = randomInt(16_000, 32_000);
    const probe = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
}
