import { setTimeout as sleep } from 'node:timers/promises';

const FIRST_PAUSE_MS = 5;
const MAX_PAUSE_MS = 50;

/**
 * Asks again until there is an answer, after longer and longer pauses: what takes seconds needs no hundred queries a
 * second. Fails after the bound rather than hang. A busy machine takes its time.
 */
export async function eventually<T>(
  ask: () => Promise<T | undefined | null | false> | T | undefined | null | false,
  boundMs = 150_000,
): Promise<T> {
  const deadline = Date.now() + boundMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 1.3, MAX_PAUSE_MS)) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    if (Date.now() > deadline) throw new Error(`nothing within ${boundMs} ms`);
    await sleep(pauseMs);
  }
}

/**
 * Lets real time pass. Only where time itself is the subject, such as an expiry, or where a client or a provider of a test
 * has a pace. `eventually` waits for a state.
 *
 * @param _why what the time is for, for the reader
 */
export async function timePasses(ms: number, _why: string): Promise<void> {
  await sleep(ms);
}

/**
 * Asks again, 10 ms apart, until there is an answer; fails after so many times. A bound for what must be fast: unlike a time
 * limit, it leaves a busy machine the time it needs.
 */
export async function soon(ask: () => Promise<boolean>, times = 100): Promise<void> {
  for (let asked = 1; !(await ask()); asked++) {
    if (asked === times) throw new Error(`not within ${times} times`);
    await sleep(10);
  }
}
