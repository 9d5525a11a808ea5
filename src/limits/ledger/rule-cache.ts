import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { countOfChanges } from '../../database/change-counter.js';
import { ChangeFeed } from '../../database/change-feed.js';
import { DatabaseService } from '../../database/database.service.js';
import { LookupPool } from '../../database/lookup-pool.js';
import {
  eachOf,
  INSTALLATION,
  type LimitRule as StoredRule,
  ownerOf,
} from '../../limit-rules/limit-rule.entity.js';
import { hasPeriods } from './periods.js';
import { type LimitRule, type RuleSet, setOf } from './rule-set.js';

/** How the rules differ from those before. */
export interface RulesChange {
  /** Rules whose amount was lowered, or that were removed. */
  readonly lowered: readonly LimitRule[];
  /** There are other rules, or one rejects other calls, so that others may apply to a key. */
  readonly areOthers: boolean;
}

interface RuleRow extends Pick<
  StoredRule,
  | 'scope'
  | 'resource'
  | 'period'
  | 'amount'
  | 'mode'
  | 'unpriced'
  | 'reservation'
  | 'rank'
  | 'nr'
  | 'providers'
  | 'models'
  | 'filter'
> {
  version: string;
  id: string | null;
  owner_id: string;
  owner_name: string | null;
  time_zone: string;
  /** Group of each team that is in one; in the first row only. */
  groups: Record<string, string> | null;
}

/** All rules, their version and the groups of teams in one snapshot; without a rule, one row with an id that is null. */
const READ = `
  SELECT c.value AS version, r.id, r.nr, scope, COALESCE(owner_id, scope_id) AS owner_id, g.name AS owner_name, resource,
         period, amount, mode, unpriced, reservation, time_zone, rank, providers, models, filter,
         CASE WHEN row_number() OVER () = 1 THEN (
           SELECT jsonb_object_agg(t.id, t.group_id) FROM team t WHERE t.group_id IS NOT NULL) END AS groups
  FROM (${countOfChanges('limits')}) c
  LEFT JOIN limit_rule r ON true
  LEFT JOIN team_group g ON g.id = r.owner_id`;
const MAX_SETS = 100_000;

/** All rules, in memory: which apply to a call takes no query. */
@Injectable()
export class RuleCache {
  /** False until the rules were read for the first time. */
  isLoaded = false;
  private readonly rules = new Map<string, LimitRule>();
  private byOwner = new Map<string, LimitRule[]>();
  private groups = new Map<string, string>();
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

  /** The rules of a key, its team, the group of that and the installation; null if there are none. */
  of(teamId: string, keyId: string): RuleSet | null {
    if (this.rules.size === 0) return null;
    const known = this.sets.get(keyId);
    if (known !== undefined) return known;
    const owners = [INSTALLATION, this.groups.get(teamId) ?? '', teamId, keyId];
    const set = setOf(owners.flatMap((owner) => this.byOwner.get(owner) ?? []));
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
      if (rule === undefined) {
        this.rules.set(row.id, (rule = ruleOf(row.id, row)));
        areOthers = true;
      }
      if (hasOtherPeriods(rule, row.time_zone)) {
        rule.timeZone = row.time_zone;
        areOthers = true;
      }
      if (rule.mode !== row.mode || rule.unpriced !== row.unpriced) areOthers = true;
      if (amount < rule.amount) lowered.push(rule);
      rule.amount = amount;
      rule.mode = row.mode;
      rule.unpriced = row.unpriced;
      rule.reservation = row.reservation;
      rule.ownerName = row.owner_name;
      const siblings = byOwner.get(row.owner_id);
      if (siblings === undefined) byOwner.set(row.owner_id, [rule]);
      else siblings.push(rule);
    }
    for (const [id, rule] of this.rules) {
      if (seen.has(id)) continue;
      rule.removed = true;
      this.rules.delete(id);
      lowered.push(rule);
      areOthers = true;
    }
    const groups = new Map(Object.entries(rows[0]!.groups ?? {}));
    // Other rules apply to a team that has changed its group.
    areOthers ||= [...groups, ...this.groups].some(([team]) => groups.get(team) !== this.groups.get(team));
    this.groups = groups;
    this.byOwner = byOwner;
    this.sets.clear();
    this.isLoaded = true;
    if (lowered.length > 0 || areOthers) for (const notify of this.listeners) notify({ lowered, areOthers });
  }
}

function versionOf(rows: readonly RuleRow[]): bigint {
  return BigInt(rows[0]!.version);
}

/** In another time zone, days, weeks and months may begin at other times. */
function hasOtherPeriods(rule: LimitRule, timeZone: string): boolean {
  return rule.timeZone !== timeZone && hasPeriods(rule);
}

function ruleOf(id: string, row: RuleRow): LimitRule {
  return {
    id,
    nr: row.nr,
    scope: row.scope,
    owner: ownerOf(row.scope),
    ownerId: row.owner_id,
    ownerName: row.owner_name,
    each: eachOf(row.scope),
    resource: row.resource,
    period: row.period,
    timeZone: row.time_zone,
    filter: row.filter,
    providers: row.providers,
    models: row.models,
    isHot: row.rank > 0,
    amount: BigInt(row.amount),
    mode: row.mode,
    unpriced: row.unpriced,
    reservation: row.reservation,
    removed: false,
  };
}
