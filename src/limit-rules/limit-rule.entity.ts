import { Check, Column, Entity, PrimaryColumn, Unique } from 'typeorm';

export const LIMIT_OWNERS = ['installation', 'group', 'team', 'key'] as const;
export type LimitOwner = (typeof LIMIT_OWNERS)[number];
/** Who has the amount for itself; empty: the calls of the owner together. */
export type Each = '' | 'end_user' | 'session';
/** `team_end_user`: each end user of the team has the amount for itself. */
export type LimitScope = LimitOwner | `${LimitOwner}_${'end_user' | 'session'}`;
export const LIMIT_SCOPES = LIMIT_OWNERS.flatMap((owner): LimitScope[] => [
  owner,
  `${owner}_end_user`,
  `${owner}_session`,
]);
/** limit_rule.owner_id of the installation. */
export const INSTALLATION = '00000000-0000-0000-0000-000000000000';

export function ownerOf(scope: LimitScope): LimitOwner {
  return LIMIT_OWNERS.find((owner) => scope.startsWith(owner))!;
}

export function eachOf(scope: LimitScope): Each {
  return scope.endsWith('_end_user') ? 'end_user' : scope.endsWith('_session') ? 'session' : '';
}

/** `requests` and `tokens` a minute, `concurrent_requests` at once, `usd` and `tokens` of a budget. */
export const LIMIT_RESOURCES = ['requests', 'tokens', 'concurrent_requests', 'usd'] as const;
export type LimitResource = (typeof LIMIT_RESOURCES)[number];

/** `session`: budgets for each session, which have no other. */
export const BUDGET_PERIODS = ['day', 'week', 'month', 'total', 'session'] as const;
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
@Unique('limit_rule_owner_key', ['ownerId', 'scope', 'filter', 'resource', 'period'])
@Check('limit_rule_scope_check', `scope ~ '^(installation|group|team|key)(_end_user|_session)?$'`)
@Check('limit_rule_amount_check', `amount >= 0 AND amount <= 1000000000000000000`)
@Check('limit_rule_mode_check', `mode IN ('block', 'warn')`)
@Check('limit_rule_unpriced_check', `unpriced IN ('reject', 'allow')`)
@Check('limit_rule_reservation_check', `reservation IN ('typical', 'worst')`)
@Check('limit_rule_time_zone_check', `date_trunc('day', to_timestamp(0), time_zone) IS NOT NULL`)
@Check(
  'limit_rule_kind_check',
  `(resource IN ('requests', 'tokens') AND period = 'minute') OR (resource = 'concurrent_requests' AND period = 'at_once') OR (resource IN ('usd', 'tokens') AND CASE WHEN scope ~ '_session$' THEN period = 'session' ELSE period IN ('day', 'week', 'month', 'total') END)`,
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

  /** Whose it is. Random if the rule has an `ownerId`: versions before know no such rules, and leave them alone. */
  @Column('uuid', { name: 'scope_id' })
  scopeId!: string;

  @Column('uuid', {
    name: 'owner_id',
    nullable: true,
    comment: 'The team, key or group; zeros for the installation. Null: scope_id.',
  })
  ownerId!: string | null;

  @Column('text', {
    array: true,
    nullable: true,
    comment: 'Only calls to these providers count; null: all.',
  })
  providers!: string[] | null;

  @Column('text', {
    array: true,
    nullable: true,
    comment: 'Only calls of these models count, patterns in which * stands for any characters; null: all.',
  })
  models!: string[] | null;

  @Column('text', {
    default: '',
    comment: 'The providers and models in one text, so that they can be compared.',
  })
  filter!: string;

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

  @Column('timestamptz', {
    name: 'counted_at',
    nullable: true,
    comment:
      'When it counted what was used since its period began: calls that do not name it. Null: it began at 0.',
  })
  countedAt!: Date | null;

  @Column('int', { default: 1 })
  version!: number;
}
