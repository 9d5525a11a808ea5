import { setTimeout as sleep } from 'node:timers/promises';

const FIRST_PAUSE_MS = 5;
const MAX_PAUSE_MS = 50;

/**
 * Asks again until there is an answer, after longer and longer pauses: what takes seconds needs no hundred queries a
 * second.
 *
 * @param within fails after so many milliseconds rather than hang; a busy machine takes its time
 * @param what is in the error's message
 */
export async function eventually<T>(
  ask: () => Promise<T | undefined | null | false> | T | undefined | null | false,
  within = 150_000,
  what = 'nothing',
): Promise<T> {
  const deadline = Date.now() + within;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 1.3, MAX_PAUSE_MS)) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    if (Date.now() > deadline) throw new Error(`${what} within ${within} ms`);
    await sleep(pauseMs);
  }
}
