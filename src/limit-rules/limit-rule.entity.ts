import { Check, Column, Entity, PrimaryColumn, Unique } from 'typeorm';

/** `team_end_user` and `key_end_user`: each end user of the team or key has the amount for itself. */
export type LimitScope = 'team' | 'key' | 'team_end_user' | 'key_end_user';

/** `requests` and `tokens` a minute, `concurrent_requests` at once, `usd` and `tokens` of a budget. */
export const LIMIT_RESOURCES = ['requests', 'tokens', 'concurrent_requests', 'usd'] as const;
export type LimitResource = (typeof LIMIT_RESOURCES)[number];

export const BUDGET_PERIODS = ['day', 'week', 'month', 'total'] as const;
export type BudgetPeriod = (typeof BUDGET_PERIODS)[number];
/** `minute` for rates, `at_once` for concurrency. */
export const LIMIT_PERIODS = ['minute', 'at_once', ...BUDGET_PERIODS] as const;
export type LimitPeriod = (typeof LIMIT_PERIODS)[number];

export const BUDGET_MODES = ['block', 'warn'] as const;
export type BudgetMode = (typeof BUDGET_MODES)[number];

/** What a budget in USD does with calls of models that have no price. */
export const UNPRICED_MODES = ['reject', 'allow'] as const;
export type UnpricedMode = (typeof UNPRICED_MODES)[number];

/** `typical`: a call reserves what such calls usually use; `worst`: the most that it can use. */
export const RESERVATIONS = ['typical', 'worst'] as const;
export type ReservationMode = (typeof RESERVATIONS)[number];

/** One limit or budget. Identified by its owner, resource and period: a new amount keeps what was used. */
@Entity('limit_rule', { comment: 'Limits and budgets of teams, keys and their end users.' })
@Unique('limit_rule_nr_key', ['nr'])
@Unique('limit_rule_key', ['scopeId', 'scope', 'resource', 'period'])
@Check('limit_rule_scope_check', `scope IN ('team', 'key', 'team_end_user', 'key_end_user')`)
@Check('limit_rule_amount_check', `amount >= 0 AND amount <= 1000000000000000000`)
@Check('limit_rule_mode_check', `mode IN ('block', 'warn')`)
@Check('limit_rule_unpriced_check', `unpriced IN ('reject', 'allow')`)
@Check('limit_rule_reservation_check', `reservation IN ('typical', 'worst')`)
@Check('limit_rule_time_zone_check', `date_trunc('day', to_timestamp(0), time_zone) IS NOT NULL`)
@Check(
  'limit_rule_kind_check',
  `(resource IN ('requests', 'tokens') AND period = 'minute') OR (resource = 'concurrent_requests' AND period = 'at_once') OR (resource IN ('usd', 'tokens') AND period IN ('day', 'week', 'month', 'total'))`,
)
export class LimitRule {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'limit_rule_pkey' })
  id!: string;

  /** Random: after a failover, a sequence hands numbers out again. */
  @Column('bigint', {
    default: () => "(random() * '4.611686018427388e+18')",
    comment: 'A short name of the rule, which rows that name many rules store.',
  })
  nr!: string;

  @Column('text')
  scope!: LimitScope;

  @Column('uuid', { name: 'scope_id' })
  scopeId!: string;

  @Column('text')
  resource!: LimitResource;

  @Column('text')
  period!: LimitPeriod;

  /** Requests, tokens, calls, or billionths of a US dollar. `pg` returns bigint as text. */
  @Column('bigint')
  amount!: string;

  @Column('text', { default: 'block' })
  mode!: BudgetMode;

  @Column('smallint', { name: 'alert_at', array: true, default: '{}' })
  alertAt!: number[];

  @Column('text', { default: 'reject' })
  unpriced!: UnpricedMode;

  @Column('text', { default: 'typical' })
  reservation!: ReservationMode;

  /** Where its periods begin: BUDGET_TIMEZONE. */
  @Column('text', { name: 'time_zone', default: 'UTC' })
  timeZone!: string;

  /** Meters are locked in this order. */
  @Column('smallint', {
    default: 0,
    comment: 'The order in which meters are locked: 0 of keys and teams, 1 of groups, 2 of the installation.',
  })
  rank!: number;

  @Column('int', { default: 1 })
  version!: number;
}
