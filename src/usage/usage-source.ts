import { Conditions, conditionsOf, type RequestFilter } from '../requests/request-query.js';
import type { Measure } from './measures.js';
import { IS_NEW, SLOT_COLUMNS, SLOT_MS, slotsOfRows } from './rollup-sql.js';
import { type Interval, isInterval, SLOT_GROUPS, type UsageGroup } from './usage-groups.js';

/** What usage is added up from. */
export interface UsageSource {
  /** FROM clause, with its WHERE. */
  from: string;
  /** The column to group by time by. */
  time: string;
  sum: (name: string, measure: Measure) => string;
}

/** Not '1 day', which has 23 hours or 25 where the session's time zone changes its clocks. */
const A_DAY = `interval '24 hours'`;
/** Filters that can be applied to half-hourly sums. */
const SLOT_FILTERS = ['teams', 'team', 'key', 'provider', 'model', 'from', 'to'];

/** Can the half-hourly sums answer this question? Else only the rows can. */
export function fitsSlots(groups: readonly UsageGroup[], filter: RequestFilter, zone: string): boolean {
  const names = Object.entries(filter).flatMap(([name, value]) => (value === undefined ? [] : name));
  return (
    names.every((name) => SLOT_FILTERS.includes(name)) &&
    groups.every((group) => isInterval(group) || (SLOT_GROUPS as readonly string[]).includes(group)) &&
    isOnHalfHours(zone)
  );
}

/** Do the days and hours of this time zone begin with a half hour of UTC? Those of Asia/Kathmandu do not. */
function isOnHalfHours(zone: string): boolean {
  const format = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' });
  const year = new Date().getUTCFullYear();
  const dates = Array.from({ length: 36 }, (_, month) => Date.UTC(year - 2, month));
  return dates.every((date) => {
    const offset = format.formatToParts(date).find(({ type }) => type === 'timeZoneName')!.value;
    const minutes = /:(\d\d)/.exec(offset)?.[1] ?? '00';
    return Number(minutes) % 30 === 0;
  });
}

export function rowsSource(filter: RequestFilter): { source: UsageSource; conditions: Conditions } {
  const conditions = conditionsOf(filter);
  return {
    conditions,
    source: {
      from: `request_log ${conditions.where}`,
      time: 'started_at',
      sum: (_, { ofRows }) => ofRows,
    },
  };
}

/**
 * The daily sums of UTC days that lie within one period and within the range; the half-hourly sums of the others; and the
 * rows that are in neither: those recorded since the last run of the roll-up, and those of half hours that the range cuts.
 * One statement reads all, so that no call is counted twice or missed.
 *
 * @param interval the period to group by @param zone in which it begins
 * @param addedUntil where the roll-up was a moment ago. The statement reads where it is now, which is the same or later;
 *   only with a value that it knows does Postgres expect few new rows, and not a third of the log
 */
export function slotsSource(
  filter: RequestFilter,
  interval: Interval | undefined,
  zone: string,
  addedUntil: Date,
): { source: UsageSource; conditions: Conditions } {
  const { from, to, ...subject } = filter;
  const first = from && ceil(from);
  const last = to && floor(to);
  // The range lies within one half hour, or is cut on both sides of a boundary.
  if (first && last && first >= last) return rowsSource(filter);

  const conditions = new Conditions();
  const [start, end] = [first, last].map((time) => time && conditions.placeholder(time));
  const subjects = Object.entries(subject).flatMap(([name, value]) =>
    value === undefined ? [] : CONDITION[name as keyof typeof CONDITION](conditions.placeholder(value)),
  );
  const within = (column: string) => [
    ...(start ? [`${column} >= ${start}`] : []),
    ...(end ? [`${column} < ${end}`] : []),
    ...subjects,
  ];
  const isWhole = ['true'];
  if (start) isWhole.push(`day >= ${start}`);
  if (end) isWhole.push(`day + ${A_DAY} <= ${end}`);
  if (interval === 'hour' || interval === 'half_hour') isWhole.push('false');
  else if (interval) {
    // Each day whose first and last half hour lie in the same period: none by day in Berlin, nearly all by month.
    const [begin, last] = ['day', `day + ${A_DAY} - interval '30 minutes'`];
    const place = `${conditions.placeholder(zone)}::text`;
    isWhole.push(
      `date_trunc('${interval}', ${begin}, ${place}) = date_trunc('${interval}', ${last}, ${place})`,
    );
  }
  const days = `
    SELECT day, ${isWhole.join(' AND ')} AS is_whole
    FROM generate_series(
      date_trunc('day', COALESCE(${start ?? 'NULL'}, (SELECT min(slot) FROM usage_day)), 'UTC'),
      COALESCE(${end ?? 'NULL'}, (SELECT max(slot) FROM usage_day)), ${A_DAY}) AS day`;
  const parts = [
    `SELECT ${SLOT_COLUMNS} FROM usage_day
     WHERE ${['slot IN (SELECT day FROM days WHERE is_whole)', ...subjects].join(' AND ')}`,
    // By the index, day by day: there are few such days, which Postgres cannot know. OFFSET keeps it from joining all slots.
    `SELECT ${SLOT_COLUMNS} FROM days CROSS JOIN LATERAL (
       SELECT ${SLOT_COLUMNS} FROM usage_slot
       WHERE ${[`slot >= day AND slot < day + ${A_DAY}`, ...within('slot')].join(' AND ')} OFFSET 0) AS of_day
     WHERE NOT is_whole`,
    slotsOfRows(
      [...within('started_at'), IS_NEW, `recorded_at > ${conditions.placeholder(addedUntil)}`].join(' AND '),
    ),
  ];
  const edges = [
    ...(from && first && from < first ? [[from, start!] as const] : []),
    ...(to && last && last < to ? [[end!, to] as const] : []),
  ].map(([low, high]) => {
    const [a, b] = [low, high].map((bound) =>
      typeof bound === 'string' ? bound : conditions.placeholder(bound),
    );
    return `started_at >= ${a} AND started_at < ${b}`;
  });
  for (const edge of edges) parts.push(slotsOfRows([edge, ...subjects].join(' AND ')));
  return {
    conditions,
    source: {
      from: `(WITH days AS (${days}) ${parts.join(' UNION ALL ')}) AS slots`,
      time: 'slot',
      sum: (name, { ofSlots }) => ofSlots(name),
    },
  };
}

const CONDITION = {
  teams: (value: string) => `team_id = ANY (${value})`,
  team: (value: string) => `team_id = ${value}`,
  key: (value: string) => `key_id = ${value}`,
  provider: (value: string) => `provider = ${value}`,
  model: (value: string) => `model = ${value}`,
};

export function isSlotStart(time: Date): boolean {
  return time.getTime() % SLOT_MS === 0;
}

function floor(time: Date): Date {
  return new Date(Math.floor(time.getTime() / SLOT_MS) * SLOT_MS);
}

function ceil(time: Date): Date {
  return new Date(Math.ceil(time.getTime() / SLOT_MS) * SLOT_MS);
}
