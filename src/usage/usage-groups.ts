/** Groups by time, largest period first. */
export const INTERVALS = ['month', 'week', 'day', 'hour', 'half_hour', 'minute'] as const;
export type Interval = (typeof INTERVALS)[number];

/** By minute, rows are added up: at most those of this time. */
export const MINUTES_MS = 3 * 3_600_000;

/** Groups that the half-hourly sums have, apart from time. */
export const SLOT_GROUPS = ['group', 'team', 'key', 'owner', 'cost_center', 'provider', 'model'] as const;
/** Groups that only the rows of the log have. */
export const ROW_GROUPS = ['end_user', 'session'] as const;
export const PLAIN_GROUPS = [...SLOT_GROUPS, ...ROW_GROUPS];
export const TAG_GROUP = /^tag:([a-zA-Z0-9_.-]{1,64})$/;

/** `tag:<name>` groups by a tag. */
export type UsageGroup = Interval | (typeof PLAIN_GROUPS)[number] | `tag:${string}`;

export function isUsageGroup(word: string): word is UsageGroup {
  return isInterval(word) || (PLAIN_GROUPS as readonly string[]).includes(word) || TAG_GROUP.test(word);
}

export function isInterval(group: string): group is Interval {
  return (INTERVALS as readonly string[]).includes(group);
}

/** What groups can be sorted by, largest first, and the sum that decides. */
export const SORTS = {
  calls: 'calls',
  errors: 'errors',
  tokens: 'total_tokens',
  cost: 'cost_usd',
  cached_tokens: 'cached_tokens',
  cache_write_tokens: 'cache_write_tokens',
  completion_tokens: 'completion_tokens',
  p95: 'p95_ms',
} as const;
export type UsageSort = keyof typeof SORTS;
export const USAGE_SORTS = Object.keys(SORTS) as UsageSort[];
