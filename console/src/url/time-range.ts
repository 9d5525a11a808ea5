import { useMemo } from 'react';
import { addPeriods, DAY_MS, HALF_HOUR_MS, HOUR_MS, type Interval, MINUTE_MS, startOf } from './calendar';
import { useTimeZone } from './time-zone';
import { useUrlState, type UrlState } from './url-state';

/** The ranges that move with the clock. Their bounds are half hours, for which the gateway keeps sums; minutes of the last hour. */
export const PRESETS = {
  '1h': 'Last hour',
  '6h': 'Last 6 hours',
  '24h': 'Last 24 hours',
  today: 'Today',
  yesterday: 'Yesterday',
  '7d': 'Last 7 days',
  'last-week': 'Last week',
  '30d': 'Last 30 days',
  month: 'This month',
  'last-month': 'Last month',
  '90d': 'Last 90 days',
} as const;
export type Preset = keyof typeof PRESETS;

/** Days, weeks and months of the calendar, whole or up to now. */
const CALENDAR: Partial<
  Record<Preset, { period: 'day' | 'week' | 'month'; comparedWith: string; isOver: boolean }>
> = {
  today: { period: 'day', comparedWith: 'same part of yesterday', isOver: false },
  yesterday: { period: 'day', comparedWith: 'day before', isOver: true },
  'last-week': { period: 'week', comparedWith: 'week before', isOver: true },
  month: { period: 'month', comparedWith: 'same part of last month', isOver: false },
  'last-month': { period: 'month', comparedWith: 'month before', isOver: true },
};

export interface TimeRange {
  preset: Preset | 'custom';
  from: Date;
  /** Exclusive. */
  to: Date;
  label: string;
  /** It ends before now: its end is not "now". */
  isOver: boolean;
  /** For sentences: "in the last 30 days", "this month". */
  phrase: string;
  /** What it is compared with: "previous 30 days". */
  comparedWith: string;
  /** The period of one bar of a chart. */
  interval: Interval;
  /** As many hours before `from`, up to the same point: what this range is compared with. */
  previous: { from: Date; to: Date };
  zone: string;
  /** Both bounds as the API takes them. */
  query: { from: string; to: string };
  previousQuery: { from: string; to: string };
}

type RangeState = Pick<UrlState, 'range' | 'from' | 'to'>;

/** The time range of the page, from its URL. */
export function useTimeRange(fallback: Preset): TimeRange {
  const [{ range, from, to }] = useUrlState();
  const zone = useTimeZone();
  // The bounds of a preset change only when the next half hour begins, so that queries keep their keys until then.
  const tick = Math.floor(Date.now() / ((range ?? fallback) === '1h' ? MINUTE_MS : HALF_HOUR_MS));
  return useMemo(
    () => timeRangeOf({ range, from, to }, fallback, zone, new Date()),
    [range, from, to, fallback, zone, tick],
  );
}

export function timeRangeOf(state: RangeState, fallback: Preset, zone: string, now: Date): TimeRange {
  const custom = customOf(state);
  if (custom !== undefined) {
    const span = custom.to.getTime() - custom.from.getTime();
    return complete(
      'custom',
      custom,
      'Custom range',
      { from: new Date(custom.from.getTime() - span), to: custom.from },
      zone,
    );
  }
  const preset: Preset = isPreset(state.range) ? state.range : fallback;
  const bounds = presetBounds(preset, zone, now);
  return complete(preset, bounds, PRESETS[preset], previousOf(preset, bounds, zone, now), zone);
}

interface Bounds {
  from: Date;
  to: Date;
}

function complete(
  preset: TimeRange['preset'],
  { from, to }: Bounds,
  label: string,
  previous: Bounds,
  zone: string,
): TimeRange {
  const query = { from: from.toISOString(), to: to.toISOString() };
  const previousQuery = { from: previous.from.toISOString(), to: previous.to.toISOString() };
  return {
    preset,
    from,
    to,
    label,
    isOver: preset === 'custom' || CALENDAR[preset]?.isOver === true,
    phrase: preset === 'custom' ? 'in this range' : phraseOf(preset),
    comparedWith: comparedWith(preset),
    interval: intervalFor(to.getTime() - from.getTime()),
    previous,
    zone,
    query,
    previousQuery,
  };
}

/** "in the last 7 days", "this month", "yesterday" */
function phraseOf(preset: Preset): string {
  const text = PRESETS[preset].toLowerCase();
  return preset in CALENDAR ? text : `in the ${text}`;
}

function comparedWith(preset: TimeRange['preset']): string {
  if (preset === 'custom') return 'previous range';
  return CALENDAR[preset]?.comparedWith ?? PRESETS[preset].replace('Last', 'previous');
}

function customOf({ from, to }: RangeState): Bounds | undefined {
  if (from === undefined || to === undefined) return undefined;
  const bounds = { from: new Date(from), to: new Date(to) };
  return bounds.from < bounds.to ? bounds : undefined;
}

function isPreset(text: string | undefined): text is Preset {
  return text !== undefined && Object.hasOwn(PRESETS, text);
}

function presetBounds(preset: Preset, zone: string, now: Date): Bounds {
  const to = new Date(Math.ceil((now.getTime() + 1) / HALF_HOUR_MS) * HALF_HOUR_MS);
  const today = startOf('day', now, zone);
  switch (preset) {
    case '1h': {
      const end = new Date(Math.ceil((now.getTime() + 1) / MINUTE_MS) * MINUTE_MS);
      return { from: new Date(end.getTime() - HOUR_MS), to: end };
    }
    case '6h':
    case '24h':
      return { from: new Date(to.getTime() - (Number.parseInt(preset) * HOUR_MS + HALF_HOUR_MS)), to };
    case '7d':
    case '30d':
    case '90d':
      return { from: addPeriods('day', today, 1 - Number.parseInt(preset), zone), to };
    case 'today':
    case 'yesterday':
    case 'last-week':
    case 'month':
    case 'last-month': {
      const { period, isOver } = CALENDAR[preset]!;
      const start = startOf(period, now, zone);
      return isOver ? { from: addPeriods(period, start, -1, zone), to: start } : { from: start, to };
    }
  }
}

function previousOf(preset: Preset, { from, to }: Bounds, zone: string, now: Date): Bounds {
  const calendar = CALENDAR[preset];
  if (calendar !== undefined) {
    const start = addPeriods(calendar.period, from, -1, zone);
    const end = new Date(start.getTime() + (to.getTime() - from.getTime()));
    return { from: start, to: calendar.isOver || end > from ? from : end };
  }
  const days = Math.ceil((now.getTime() - from.getTime()) / DAY_MS);
  const isDays = preset.endsWith('d');
  const span = to.getTime() - from.getTime();
  const start = isDays ? addPeriods('day', from, -days, zone) : new Date(from.getTime() - span);
  return { from: start, to: new Date(start.getTime() + span) };
}

function intervalFor(span: number): Interval {
  if (span <= 3 * HOUR_MS) return 'minute';
  if (span <= 12 * HOUR_MS) return 'half_hour';
  if (span <= 3 * DAY_MS) return 'hour';
  if (span <= 100 * DAY_MS) return 'day';
  return span <= 400 * DAY_MS ? 'week' : 'month';
}
