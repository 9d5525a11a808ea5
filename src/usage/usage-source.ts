import { Conditions, conditionsOf, type RequestFilter } from '../requests/request-query.js';
import type { Measure } from './measures.js';
import { isNew, SLOT_MS, slotsOfRows, SUM_COLUMNS } from './rollup-sql.js';
import { type Interval, isInterval, SLOT_GROUPS, type UsageGroup } from './usage-groups.js';

/** What usage is added up from. */
export interface UsageSource {
  /** FROM clause, with its WHERE. */
  from: string;
  /** The column to group by time by. */
  time: string;
  /** Is that the start of the period already? */
  isPeriod: boolean;
  sum: (name: string, measure: Measure) => string;
}

/** Filters that can be applied to half-hourly sums. */
const SLOT_FILTERS = ['teams', 'group_teams', 'noted_keys', 'team', 'key', 'provider', 'model', 'from', 'to'];

/** Can the half-hourly sums answer this question? Else only the rows can. */
export function fitsSlots(groups: readonly UsageGroup[], filter: RequestFilter, zone: string): boolean {
  const names = Object.entries(filter).flatMap(([name, value]) => (value === undefined ? [] : name));
  return (
    names.every((name) => SLOT_FILTERS.includes(name)) &&
    !groups.includes('minute') &&
    groups.every((group) => isInterval(group) || (SLOT_GROUPS as readonly string[]).includes(group)) &&
    // In other time zones, an hour begins within every second half hour: reading all rows is faster.
    (!groups.includes('hour') || isOnHalfHours(zone))
  );
}

/** Do periods begin within half hours? Then the rows of those half hours are needed as well. */
export function cutsSlots(groups: readonly UsageGroup[], zone: string): boolean {
  // Half hours are those of UTC.
  return groups.some((group) => isInterval(group) && group !== 'half_hour') && !isOnHalfHours(zone);
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
      isPeriod: false,
      sum: (_, { ofRows }) => ofRows,
    },
  };
}

const DAY_MS = 86_400_000;

/** The half hours of a range whose sums may be read. */
export interface SlotRange {
  first?: Date;
  last?: Date;
}

/**
 * The half hours that a range does not cut.
 *
 * @param since earlier ones are left out @returns null if there are none: only rows can answer
 */
export function slotRange({ from, to }: RequestFilter, since?: Date): SlotRange | null {
  const start = since && (!from || from < since) ? since : from;
  const range = { first: start && ceil(start), last: to && floor(to) };
  return range.first && range.last && range.first >= range.last ? null : range;
}

/** What there is to add up, as daysSql() reads it. */
export interface Days {
  /** Where the roll-up is: rows recorded later are in no sum. */
  cursor: Date;
  /** How many UTC days of the range have sums. */
  days: number;
  /** Those of them that do not lie within one period and within the range: their half-hourly sums are read. */
  cut: Date[];
  /** When the periods of the range begin, and the first quarter of an hour of each; empty for half hours. */
  periods: Date[];
  starts: Date[];
}

/** `interval '1 day'` has 23 hours or 25 where the session's time zone changes its clocks. */
const A_DAY = `interval '24 hours'`;
/** In every time zone, periods begin at a quarter of an hour. */
const QUARTER = `interval '15 minutes'`;

/**
 * The statement that returns Days. It lists no day before the first one with sums or after the last one, whatever the range.
 *
 * @param interval the period to group by @param zone in which it begins
 */
export function daysSql(
  { first, last }: SlotRange,
  interval: Interval | undefined,
  zone: string,
): { text: string; values: unknown[] } {
  const values: unknown[] = [first, last];
  const isWhole = [
    `($1::timestamptz IS NULL OR day >= $1)`,
    `($2::timestamptz IS NULL OR day + ${A_DAY} <= $2)`,
  ];
  let periods = 'SELECT NULL::timestamptz AS period, NULL::timestamptz AS start WHERE false';
  if (interval === 'half_hour') isWhole.push('false');
  else if (interval) {
    // Whether its first and its last moment lie in the same period: never by day in Berlin, nearly always by month.
    values.push(zone);
    isWhole.push(
      `date_trunc('${interval}', day, $3) = date_trunc('${interval}', day + ${A_DAY} - ${QUARTER}, $3)`,
    );
    periods = `
      SELECT date_trunc('${interval}', quarter, $3) AS period, min(quarter) AS start
      FROM days, generate_series(day, CASE WHEN is_whole THEN day ELSE day + ${A_DAY} - ${QUARTER} END, ${QUARTER}) AS quarter
      GROUP BY 1`;
  }
  return {
    text: `
      WITH days AS (
        SELECT day, ${isWhole.join(' AND ')} AS is_whole
        FROM (SELECT min(slot) AS first, max(slot) AS last FROM usage_day) AS stored, generate_series(
          date_trunc('day', CASE WHEN first < $1 THEN $1 ELSE first END, 'UTC'), LEAST(last, $2), ${A_DAY}) AS day),
        periods AS (${periods})
      SELECT "cursor", (SELECT count(*)::int FROM days) AS days, ARRAY(SELECT day FROM days WHERE NOT is_whole) AS cut,
        ARRAY(SELECT period FROM periods ORDER BY start) AS periods, ARRAY(SELECT start FROM periods ORDER BY start) AS starts
      FROM usage_rollup`,
    values,
  };
}

/**
 * The daily sums of UTC days that lie within one period and within the range; the half-hourly sums of the others; and the
 * rows that are in neither: those recorded since the last run of the roll-up, those of half hours that the range cuts, and
 * those of half hours within which a period begins, the sums of which are left out.
 * All bounds are values that Postgres knows when it plans, so that it expects as many rows as there are.
 *
 * @param days of the same snapshot, so that no call is counted twice or missed
 */
export function slotsSource(
  filter: RequestFilter,
  { first, last }: SlotRange,
  { cursor, days, cut, periods, starts }: Days,
  interval: Interval | undefined,
  zone: string,
): { source: UsageSource; conditions: Conditions } {
  const { from, to, ...subject } = filter;
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
  const isCut = rangesOf(cut)
    .map((range) => range.map((time) => conditions.placeholder(time)))
    .map(([low, high]) => `slot >= ${low} AND slot < ${high}`)
    .join(' OR ');
  const isPeriod = periods.length > 0;
  const place = isPeriod ? `${conditions.placeholder(zone)}::text` : '';
  const rows = (where: string[], tables?: string) =>
    `SELECT ${isPeriod ? `date_trunc('${interval}', slot, ${place}) AS slot` : 'slot'}, ${SUM_COLUMNS}
     FROM (${slotsOfRows(where.join(' AND '), tables, QUARTER)}) AS added`;
  // Finds the period of a slot in a fifth of the time that date_trunc() takes.
  const [all, begin] = [periods, starts].map(
    (times) => isPeriod && `${conditions.placeholder(times)}::timestamptz[]`,
  );
  const stored = (table: string, where: string) =>
    `SELECT ${isPeriod ? `(${all})[width_bucket(slot, ${begin})] AS slot` : 'slot'}, ${SUM_COLUMNS}
     FROM ${table} WHERE ${[where, ...within('slot')].join(' AND ')}`;
  const added = isNew(conditions.placeholder(cursor));
  const parts = [rows([...within('started_at'), added])];
  if (cut.length < days) parts.push(stored('usage_day', isCut === '' ? 'true' : `NOT (${isCut})`));
  const shared = starts.filter((time) => !isSlotStart(time)).map(floor);
  if (shared.length > 0) {
    const slots = `${conditions.placeholder(shared)}::timestamptz[]`;
    parts.push(stored('usage_slot', `(${isCut}) AND slot <> ALL (${slots})`));
    const isShared = `started_at >= half_hour AND started_at < half_hour + interval '30 minutes'`;
    parts.push(
      rows(
        [isShared, ...within('started_at'), `NOT (${added})`],
        `request_log, unnest(${slots}) AS half_hour`,
      ),
    );
  } else if (cut.length > 0) parts.push(stored('usage_slot', `(${isCut})`));
  if (first && (!from || from < first))
    parts.push(
      rows([
        ...(from ? [`started_at >= ${conditions.placeholder(from)}`] : []),
        `started_at < ${start}`,
        ...subjects,
      ]),
    );
  if (to && last && last < to)
    parts.push(rows([`started_at >= ${end}`, `started_at < ${conditions.placeholder(to)}`, ...subjects]));
  return {
    conditions,
    source: {
      from: `(${parts.join(' UNION ALL ')}) AS slots`,
      time: 'slot',
      isPeriod,
      sum: (name, { ofSlots }) => ofSlots(name),
    },
  };
}

/** Start and end of each run of consecutive days. @param days in ascending order */
function rangesOf(days: readonly Date[]): Date[][] {
  const ranges: Date[][] = [];
  for (const day of days) {
    const end = new Date(day.getTime() + DAY_MS);
    const current = ranges.at(-1);
    if (current?.[1]?.getTime() === day.getTime()) current[1] = end;
    else ranges.push([day, end]);
  }
  return ranges;
}

const CONDITION = {
  teams: (value: string) => `team_id = ANY (${value})`,
  group_teams: (value: string) => `team_id = ANY (${value})`,
  noted_keys: (value: string) => `key_id = ANY (${value})`,
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
