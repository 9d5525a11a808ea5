import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { countOfChanges } from '../../database/change-counter.js';
import { ChangeFeed } from '../../database/change-feed.js';
import { DatabaseService } from '../../database/database.service.js';
import { LookupPool } from '../../database/lookup-pool.js';
import type {
  BudgetMode,
  LimitPeriod,
  LimitResource,
  LimitScope,
  ReservationMode,
  UnpricedMode,
} from '../../limit-rules/limit-rule.entity.js';

/** A rule in force. Its values change in place when the stored rule does. */
export interface LimitRule {
  readonly id: string;
  /** limit_rule.nr */
  readonly nr: string;
  readonly scope: LimitScope;
  readonly scopeId: string;
  readonly resource: LimitResource;
  readonly period: LimitPeriod;
  readonly timeZone: string;
  /** All replicas share it: exchanged less often, on a connection of its own, and settled in parts. */
  readonly isHot: boolean;
  /** Requests, tokens, calls, or billionths of a US dollar. */
  amount: bigint;
  mode: BudgetMode;
  unpriced: UnpricedMode;
  reservation: ReservationMode;
  /** True once the rule was removed. */
  removed: boolean;
}

/** The rules that apply to a call, and what they need to know of it. */
export interface RuleSet {
  readonly rules: readonly LimitRule[];
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
}

/** How the rules differ from those before. */
export interface RulesChange {
  /** Rules whose amount was lowered, or that were removed. */
  readonly lowered: readonly LimitRule[];
  /** There are other rules, or one rejects other calls, so that others may apply to a key. */
  readonly areOthers: boolean;
}

interface RuleRow {
  version: string;
  id: string | null;
  nr: string;
  scope: LimitScope;
  scope_id: string;
  resource: LimitResource;
  period: LimitPeriod;
  amount: string;
  mode: BudgetMode;
  unpriced: UnpricedMode;
  reservation: ReservationMode;
  time_zone: string;
  rank: number;
}

/** All rules and their version in one snapshot; without a rule, one row with an id that is null. */
const READ = `
  SELECT c.value AS version, r.id, r.nr, scope, scope_id, resource, period, amount, mode, unpriced, reservation, time_zone, rank
  FROM (${countOfChanges('limits')}) c LEFT JOIN limit_rule r ON true`;
const MAX_SETS = 100_000;

/** All rules, in memory: which apply to a call takes no query. */
@Injectable()
export class RuleCache {
  /** False until the rules were read for the first time. */
  isLoaded = false;
  private readonly rules = new Map<string, LimitRule>();
  private byOwner = new Map<string, LimitRule[]>();
  private readonly sets = new Map<string, RuleSet | null>();
  private readonly listeners: ((change: RulesChange) => void)[] = [];
  private version = -1n;
  private reading: Promise<void> | null = null;

  constructor(
    private readonly pool: LookupPool,
    feed: ChangeFeed,
    database: DatabaseService,
  ) {
    database.whenReady(() => this.read());
    feed.subscribe('limits', {
      onChange: null,
      compare: async (client: pg.ClientBase) => {
        const { rows } = await client.query<RuleRow>(READ);
        // It was read before the rules that are there; or a backup was restored, and what is read now is older too.
        if (versionOf(rows) >= this.version) this.replace(rows);
        else this.replace((await client.query<RuleRow>(READ)).rows);
      },
    });
  }

  /** Registers a listener for changes of the rules. Call in a constructor. */
  listen(listener: (change: RulesChange) => void): void {
    this.listeners.push(listener);
  }

  /** Waits until the rules are at least those of a version, without the notification of the change. */
  async reach(version: bigint): Promise<void> {
    // A read that is under way may have begun before; the next one has not.
    for (let reads = 0; this.version < version && reads < 2; reads++)
      await (this.reading ??= this.read().finally(() => (this.reading = null)));
  }

  get isEmpty(): boolean {
    return this.rules.size === 0;
  }

  /** Whether all replicas share a rule. */
  get hasHot(): boolean {
    for (const { isHot } of this.rules.values()) if (isHot) return true;
    return false;
  }

  /** The rules of a key and its team; null if there are none. */
  of(teamId: string, keyId: string): RuleSet | null {
    if (this.rules.size === 0) return null;
    const known = this.sets.get(keyId);
    if (known !== undefined) return known;
    const rules = [...(this.byOwner.get(teamId) ?? []), ...(this.byOwner.get(keyId) ?? [])];
    const set = rules.length === 0 ? null : ruleSet(rules);
    if (this.sets.size >= MAX_SETS) this.sets.clear();
    this.sets.set(keyId, set);
    return set;
  }

  private async read(): Promise<void> {
    const rows = await this.pool.query<RuleRow[]>(READ);
    if (versionOf(rows) >= this.version) this.replace(rows);
  }

  /** Takes over the stored rules. A rule that is still there stays the same object. */
  private replace(rows: readonly RuleRow[]): void {
    this.version = versionOf(rows);
    const lowered: LimitRule[] = [];
    let areOthers = !this.isLoaded;
    const seen = new Set<string>();
    const byOwner = new Map<string, LimitRule[]>();
    for (const row of rows) {
      if (row.id === null) continue;
      seen.add(row.id);
      const amount = BigInt(row.amount);
      let rule = this.rules.get(row.id);
      // Another time zone has other periods.
      if (rule === undefined || rule.timeZone !== row.time_zone) {
        this.rules.set(row.id, (rule = ruleOf(row.id, row)));
        areOthers = true;
      }
      if (rule.mode !== row.mode || rule.unpriced !== row.unpriced) areOthers = true;
      if (amount < rule.amount) lowered.push(rule);
      rule.amount = amount;
      rule.mode = row.mode;
      rule.unpriced = row.unpriced;
      rule.reservation = row.reservation;
      const siblings = byOwner.get(row.scope_id);
      if (siblings === undefined) byOwner.set(row.scope_id, [rule]);
      else siblings.push(rule);
    }
    for (const [id, rule] of this.rules) {
      if (seen.has(id)) continue;
      rule.removed = true;
      this.rules.delete(id);
      lowered.push(rule);
      areOthers = true;
    }
    this.byOwner = byOwner;
    this.sets.clear();
    this.isLoaded = true;
    if (lowered.length > 0 || areOthers) for (const notify of this.listeners) notify({ lowered, areOthers });
  }
}

function versionOf(rows: readonly RuleRow[]): bigint {
  return BigInt(rows[0]!.version);
}

function ruleOf(id: string, row: RuleRow): LimitRule {
  return {
    id,
    nr: row.nr,
    scope: row.scope,
    scopeId: row.scope_id,
    resource: row.resource,
    period: row.period,
    timeZone: row.time_zone,
    isHot: row.rank > 0,
    amount: BigInt(row.amount),
    mode: row.mode,
    unpriced: row.unpriced,
    reservation: row.reservation,
    removed: false,
  };
}

/** Rates have the period `minute`, concurrency `at_once`; everything else is a budget. */
export function isBudget({ period }: Pick<LimitRule, 'period'>): boolean {
  return period !== 'minute' && period !== 'at_once';
}

export function isPerEndUser({ scope }: Pick<LimitRule, 'scope'>): boolean {
  return scope === 'team_end_user' || scope === 'key_end_user';
}

function ruleSet(rules: readonly LimitRule[]): RuleSet {
  const blocking = rules.filter(({ mode }) => mode === 'block');
  const blockingUsd = blocking.filter(({ resource }) => resource === 'usd');
  return {
    rules,
    needsUsd: rules.some(({ resource }) => resource === 'usd'),
    blocksUsd: blockingUsd.length > 0,
    needsPrice: blockingUsd.some(({ unpriced }) => unpriced === 'reject'),
    reservesWorst: blocking.some(({ reservation }) => reservation === 'worst'),
    needsTokens: rules.some(({ resource }) => resource === 'tokens'),
    chargesTokens: rules.some((rule) => rule.resource === 'tokens' && isBudget(rule)),
    needsEndUser: rules.some(isPerEndUser),
    chargesEndUser: rules.some((rule) => isPerEndUser(rule) && isBudget(rule)),
  };
}
