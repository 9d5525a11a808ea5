import type { Dialect, RetryCause, StoredTarget, Strategy } from './route.entity.js';
import { RetryBudget } from './retry-budget.js';
import { TargetHealth } from './target-health.js';

/** A provider that a route sends calls to. */
export interface Target {
  /** Its name. */
  readonly provider: string;
  /** Its names of models; null if it has those that clients send. */
  readonly models: ReadonlyMap<string, string> | null;
  readonly health: TargetHealth;
  /** Distributes sessions over targets. */
  readonly seed: number;
}

/** A route as calls see it. */
export interface Route {
  readonly name: string;
  readonly targets: readonly Target[];
  readonly strategy: Strategy;
  readonly retryOn: Readonly<Record<RetryCause, boolean>>;
  readonly maxAttempts: number;
  readonly dialect: Dialect;
  readonly isDefault: boolean;
  readonly budget: RetryBudget;
}

export interface RouteSettings {
  name: string;
  targets: StoredTarget[];
  strategy: Strategy;
  retry_on: RetryCause[];
  max_attempts: number;
  dialect: Dialect;
  is_default: boolean;
}

/** @param before the route with this name until now: what is known about its targets stays */
export function makeRoute(row: RouteSettings, before: Route | undefined): Route {
  return {
    name: row.name,
    targets: row.targets.map(({ provider, models }, i) => {
      const same = before?.targets[i]?.provider === provider ? before.targets[i] : undefined;
      return {
        provider,
        models: models === null ? null : new Map(Object.entries(models)),
        health: same?.health ?? new TargetHealth(),
        seed: hashOf(`${provider} ${i}`),
      };
    }),
    strategy: row.strategy,
    retryOn: {
      connect: row.retry_on.includes('connect'),
      refused: row.retry_on.includes('refused'),
      failed: row.retry_on.includes('failed'),
    },
    maxAttempts: Math.min(row.max_attempts, row.targets.length),
    dialect: row.dialect,
    isDefault: row.is_default,
    budget: before?.budget ?? new RetryBudget(),
  };
}

/**
 * Chooses a target.
 *
 * @param excluded a bit for each target that must not be chosen
 * @param affinity hash of what should stay at one target
 * @param orResting if all others rest, take the first in order
 * @returns its index; -1 if there is none
 */
export function chooseTarget(
  { targets, strategy }: Route,
  excluded: number,
  affinity: number,
  now: number,
  orResting: boolean,
): number {
  let best = -1;
  let bestScore = -1;
  let resting = -1;
  for (let i = 0; i < targets.length; i++) {
    if ((excluded & (1 << i)) !== 0) continue;
    const { health, seed } = targets[i]!;
    if (!health.isAvailable(now)) {
      if (resting === -1) resting = i;
      continue;
    }
    if (strategy === 'order') return i;
    // The highest score (rendezvous hashing): when a target rests, only its own sessions move.
    const score = mix(affinity ^ seed);
    if (score > bestScore) {
      best = i;
      bestScore = score;
    }
  }
  return best === -1 && orResting ? resting : best;
}

/** Longer texts are hashed by their end. */
const HASHED = 64;

/** FNV-1a. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = Math.max(0, text.length - HASHED); i < text.length; i++)
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
}

/** The finalizer of MurmurHash3. */
function mix(hash: number): number {
  let bits = hash;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
