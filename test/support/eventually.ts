import { setTimeout as sleep } from 'node:timers/promises';

/** Asks again until there is an answer; fails after the bound rather than hang. A busy machine takes its time. */
export async function eventually<T>(
  ask: () => Promise<T | undefined | null | false> | T | undefined | null | false,
  boundMs = 30_000,
): Promise<T> {
  const deadline = Date.now() + boundMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    if (Date.now() > deadline) throw new Error(`nothing within ${boundMs} ms`);
    await sleep(10);
  }
}
