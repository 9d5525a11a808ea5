/**
 * What the end of the process waits for an answer of Postgres that only tidies up: every connection is closed by the exit
 * anyway. The sum of all such waits is below the 12 s that deploy/ allows for what follows the grace.
 */
export const GOODBYE_MS = 500;

/**
 * Waits for work that may hang, but no longer than this.
 *
 * @returns whether it settled in time; the work itself goes on
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
