import { setTimeout as sleep } from 'node:timers/promises';

/** Asks again until there is an answer; fails after the bound rather than hang. A busy machine takes its time. */
export async function eventually<T>(
  ask: () => Promise<T | undefined | null | false> | T | undefined | null | false,
  boundMs = 150_000,
): Promise<T> {
  const deadline = Date.now() + boundMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    if (Date.now() > deadline) throw new Error(`nothing within ${boundMs} ms`);
    await sleep(10);
  }
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
