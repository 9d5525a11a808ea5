/**
 * By the name of a patience, or `*` for all others: what its production value is multiplied by. Tests set it, before or
 * after this module is loaded, in their own process and in those that they start; no setting of the gateway does. A machine
 * that runs many tests at once is slower than any that serves calls.
 */
const FACTORS = Symbol.for('postern.patience');

const declared = new Map<string, number>();

/** A time limit of the kind "if it takes longer, give up". */
export interface Patience {
  /** Milliseconds. To be read at each use. */
  readonly ms: number;
}

/**
 * Declares how long the gateway waits for something before it gives up. A time that somebody relies on is no patience: how
 * soon a key is revoked, how long a lease or a cached entry is valid, a period, a pause between attempts.
 *
 * @param name unique; what is waited for
 * @param productionMs milliseconds
 */
export function patience(name: string, productionMs: number): Patience {
  if (declared.has(name)) throw new Error(`The patience "${name}" is declared twice.`);
  declared.set(name, productionMs);
  return {
    get ms() {
      const factors = (globalThis as { [FACTORS]?: Record<string, number> })[FACTORS];
      return factors === undefined
        ? productionMs
        : Math.round(productionMs * (factors[name] ?? factors['*'] ?? 1));
    },
  };
}

/** The production values of those that the loaded modules declare, in milliseconds. */
export function declaredPatience(): ReadonlyMap<string, number> {
  return declared;
}

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
