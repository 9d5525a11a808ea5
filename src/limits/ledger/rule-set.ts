import type {
  BudgetMode,
  Each,
  LimitOwner,
  LimitPeriod,
  LimitResource,
  LimitScope,
  ReservationMode,
  UnpricedMode,
} from '../../limit-rules/limit-rule.entity.js';
import type { ChargedBudgets } from '../../request-log/charges.js';
import { matchesPattern } from '../model-pattern.js';

/** A rule in force. Its values change in place when the stored rule does. */
export interface LimitRule {
  readonly id: string;
  /** limit_rule.nr */
  readonly nr: string;
  readonly scope: LimitScope;
  readonly owner: LimitOwner;
  readonly ownerId: string;
  readonly each: Each;
  readonly resource: LimitResource;
  readonly period: LimitPeriod;
  /** limit_rule.filter */
  readonly filter: string;
  /** Only calls to these count. */
  readonly providers: readonly string[] | null;
  /** Only calls of models count that match one of these patterns. */
  readonly models: readonly string[] | null;
  /** All replicas share it: exchanged less often, on a connection of its own, and settled in parts. */
  readonly isHot: boolean;
  /** Requests, tokens, calls, or billionths of a US dollar. */
  amount: bigint;
  timeZone: string;
  mode: BudgetMode;
  unpriced: UnpricedMode;
  reservation: ReservationMode;
  /** Name of a group; null for other owners. */
  ownerName: string | null;
  /** True once the rule was removed. */
  removed: boolean;
}

/** Where a call may be sent. */
export interface Target {
  readonly provider: string;
  /** Null: not known for certain, so that rules for some models count it. */
  readonly model: string | null;
}

/** Whose use is counted apart, as keyed hashes. */
export interface Subjects {
  readonly endUser: string;
  /** Null: the call names no session, and no rule for each session counts it. */
  readonly session: string | null;
}

/** Rates have the period `minute`, concurrency `at_once`; everything else is a budget. */
export function isBudget({ period }: Pick<LimitRule, 'period'>): boolean {
  return period !== 'minute' && period !== 'at_once';
}

/** The meter of a rule that counts a call. */
export function subjectOf({ each }: Pick<LimitRule, 'each'>, { endUser, session }: Subjects): string {
  return each === '' ? '' : each === 'end_user' ? endUser : session!;
}

/** Whether a rule counts what is sent there. Some providers take names of models in any case, so a limit counts them so. */
export function counts(
  { providers, models }: Pick<LimitRule, 'providers' | 'models'>,
  { provider, model }: Target,
): boolean {
  if (providers !== null && !providers.includes(provider)) return false;
  if (models === null || model === null) return true;
  const name = model.toLowerCase();
  return models.some((pattern) => matchesPattern(pattern.toLowerCase(), name));
}

/** The rules that apply to a call, and what they need to know of it. */
export class RuleSet implements ChargedBudgets {
  /** A budget in USD applies. */
  readonly needsUsd: boolean;
  /** A budget in USD applies that rejects calls once it is spent: the model of the call must be certain. */
  readonly blocksUsd: boolean;
  /** One of those rejects calls of models without a price. */
  readonly needsPrice: boolean;
  /** One of the budgets must never be exceeded: the call reserves the most that it can use. */
  readonly reservesWorst: boolean;
  /** A budget or a rate in tokens applies. */
  readonly needsTokens: boolean;
  /** A budget in tokens applies. */
  readonly chargesTokens: boolean;
  /** A rule for each end user applies. */
  readonly needsEndUser: boolean;
  /** A budget for each end user applies. */
  readonly chargesEndUser: boolean;
  /** A rule for each session applies. */
  readonly needsSession: boolean;
  /** A budget for each session applies. */
  readonly chargesSession: boolean;
  /** One of those for each session rejects calls. */
  readonly blocksSessions: boolean;
  /** A rule counts calls of some models only. */
  readonly namesModels: boolean;
  /** One of those rejects calls: the model of the call must be certain. */
  readonly blocksModels: boolean;
  /** Those that count only some calls. */
  private readonly filtered: readonly LimitRule[];
  /** As a row names the budgets that all of the rules count. */
  readonly names: string;
  /** The sets of those calls, by the rules that count them, one bit for each of `filtered`. */
  private readonly narrowed = new Map<bigint, RuleSet | null>();
  /** The same by the one target of a call. */
  private readonly ofTargets = new Map<string, RuleSet | null>();
  private ofNoSession: RuleSet | null | undefined;

  constructor(readonly rules: readonly LimitRule[]) {
    const blocking = rules.filter(({ mode }) => mode === 'block');
    const blockingUsd = blocking.filter(({ resource }) => resource === 'usd');
    this.needsUsd = rules.some(({ resource }) => resource === 'usd');
    this.blocksUsd = blockingUsd.length > 0;
    this.needsPrice = blockingUsd.some(({ unpriced }) => unpriced === 'reject');
    this.reservesWorst = blocking.some(({ reservation }) => reservation === 'worst');
    this.needsTokens = rules.some(({ resource }) => resource === 'tokens');
    this.chargesTokens = rules.some((rule) => rule.resource === 'tokens' && isBudget(rule));
    this.needsEndUser = rules.some(({ each }) => each === 'end_user');
    this.chargesEndUser = rules.some((rule) => rule.each === 'end_user' && isBudget(rule));
    this.needsSession = rules.some(({ each }) => each === 'session');
    this.chargesSession = rules.some((rule) => rule.each === 'session' && isBudget(rule));
    this.blocksSessions = blocking.some(({ each }) => each === 'session');
    this.namesModels = rules.some(({ models }) => models !== null);
    this.blocksModels = blocking.some(({ models }) => models !== null);
    this.filtered = rules.filter(({ providers, models }) => providers !== null || models !== null);
    const budgets = rules.filter(isBudget);
    this.names = `{${budgets.map(({ nr }) => nr).join(',')}}`;
  }

  /** A rule counts only some calls. */
  get isFiltered(): boolean {
    return this.filtered.length > 0;
  }

  /** The rules that count a call which may be sent to one of these; null: none does. */
  for(targets: readonly Target[]): RuleSet | null {
    const { filtered } = this;
    if (filtered.length === 0) return this;
    const [only] = targets;
    if (only !== undefined && targets.length === 1) return this.ofTarget(only.provider, only.model);
    return this.ofAny(targets);
  }

  private ofTarget(provider: string, model: string | null): RuleSet | null {
    const { filtered, ofTargets } = this;
    if (filtered.length === 0) return this;
    // The name of a provider has no space.
    const key = model === null || !this.namesModels ? provider : `${provider} ${model}`;
    let set = ofTargets.get(key);
    if (set === undefined) {
      set = this.ofAny([{ provider, model }]);
      if (ofTargets.size >= MAX_NARROWED) ofTargets.clear();
      ofTargets.set(key, set);
    }
    return set;
  }

  private ofAny(targets: readonly Target[]): RuleSet | null {
    const { filtered } = this;
    let mask = 0n;
    filtered.forEach((rule, i) => {
      if (targets.some((target) => counts(rule, target))) mask |= 1n << BigInt(i);
    });
    let set = this.narrowed.get(mask);
    if (set === undefined) {
      const left = new Set(filtered.filter((_, i) => (mask & (1n << BigInt(i))) === 0n));
      set = left.size === 0 ? this : setOf(this.rules.filter((rule) => !left.has(rule)));
      if (this.narrowed.size >= MAX_NARROWED) this.narrowed.clear();
      this.narrowed.set(mask, set);
    }
    return set;
  }

  /** The rules that count a call which names no session; null: none does. */
  get withoutSession(): RuleSet | null {
    if (!this.needsSession) return this;
    return (this.ofNoSession ??= setOf(this.rules.filter(({ each }) => each !== 'session')));
  }

  named(provider: string, model: string | null): string {
    return this.ofTarget(provider, model)?.names ?? NONE;
  }
}

const NONE = '{}';
const MAX_NARROWED = 256;

export function setOf(rules: readonly LimitRule[]): RuleSet | null {
  return rules.length === 0 ? null : new RuleSet(rules);
}

/** The numbers of the budgets that a row names. @param budgets as the row has them */
export function numbersOf(budgets: string): string[] {
  return budgets.slice(1, -1).split(',');
}
