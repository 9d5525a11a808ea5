import { patience } from './patience.js';

/**
 * Upper bound in milliseconds for best-effort queries during shutdown. The exit closes every connection anyway. The sum of
 * all such waits is below the 12 s that deploy/ allows after the grace.
 */
export const CLOSE_TIMEOUT = patience('a step of a stop', 500);

/**
 * Waits for work that may hang, at most `boundMs`.
 *
 * @returns true if it resolved in time; false if not, and the work goes on
 */
export async function withTimeout(boundMs: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), boundMs)));
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
