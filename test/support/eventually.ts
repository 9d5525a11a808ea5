import { setTimeout as sleep } from 'node:timers/promises';

export { eventually } from '../../src/testing/eventually.js';

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
export async function soon(ask: () => Promise<boolean>, times = 1_000): Promise<void> {
  for (let asked = 1; !(await ask()); asked++) {
    if (asked === times) throw new Error(`not within ${times} times`);
    await sleep(10);
  }
}
