import { z } from 'zod';
import { COLUMNS } from '../request-log/columns.js';
import type { Page } from '../database/page.js';
import {
  INTERVALS,
  isUsageGroup,
  ROW_GROUPS,
  SLOT_GROUPS,
  type UsageGroup,
  USAGE_SORTS,
} from './usage-groups.js';
import { MEASURES } from './measures.js';
import { oneOf, pageOf, paging, shownId, timestamp, withTimeRange } from '../admin/fields.schema.js';
import { callFilter } from '../requests/requests.schema.js';
import { isTimeZone, TIME_ZONE_REMEDY } from '../platform/time-zone.js';

const count = (description: string, example: number) => z.int().meta({ description, example });

type Summed = keyof typeof MEASURES & keyof typeof COLUMNS;

/** The columns of the log that are added up as whole numbers. A row without a value adds nothing. */
const SUMMED = Object.keys(MEASURES).filter(
  (name): name is Exclude<Summed, 'cost_usd' | 'saved_usd' | 'duration_ms'> =>
    name in COLUMNS && MEASURES[name as Summed].type === 'bigint',
);

const sums = Object.fromEntries(
  SUMMED.map((name) => [name, count(`Sum: ${COLUMNS[name].description}`, 1_024)]),
) as Record<(typeof SUMMED)[number], z.ZodInt>;

const period = (description: string, example: string) => z.string().optional().meta({ description, example });
const latency = (description: string, example: number) => z.int().nullable().meta({ description, example });

const sumsSchema = z
  .strictObject({
    calls: count('Number of calls.', 14),
    retried_attempts: count(
      'Attempts of calls by a route that were followed by another attempt. They are not among the calls; their tokens and ' +
        'costs, which are rare, are in the sums.',
      0,
    ),
    errors: count('Calls that failed; a client that disconnected is no error.', 1),
    calls_without_tokens: count(
      'Calls that may have used tokens although the provider reported none, such as streams without `include_usage`: ' +
        'they are missing from the sums of tokens. Counts POST calls with a status below 400 or none, except replayed and cached ones.',
      2,
    ),
    total_tokens: count('Sum of `prompt_tokens` and `completion_tokens`.', 2_048),
    ...sums,
    unpriced_calls: count(
      'Calls with tokens or other units and without a cost, for example because their model has no price. Without `unknown_calls`.',
      1,
    ),
    cost_usd: z.string().nullable().meta({
      description: 'Exact sum of the costs in USD; null if no call has one.',
      example: '12.345678900',
    }),
    unknown_calls: count(
      'Calls whose cost is not known, because the provider may have billed what was not read, such as the rest of a stream ' +
        'that broke off. They are not in `cost_usd`.',
      3,
    ),
    unknown_low_usd: z.string().nullable().meta({
      description:
        'Exact sum in USD of what these calls cost at least, never a part of `cost_usd`; null if it is known of none.',
      example: '0.200000000',
    }),
    unknown_high_usd: z
      .string()
      .nullable()
      .meta({
        description:
          'Exact sum in USD of what these calls cost at most, without `unbounded_calls`, never a part of `cost_usd`; null if it ' +
          'is known of none.',
        example: '1.940000000',
      }),
    unbounded_calls: count('Calls among `unknown_calls` of which it is not known what they cost at most.', 0),
    saved_usd: z.string().nullable().meta({
      description:
        'Exact sum in USD of what calls from the response cache would have cost; null if it is known of no call.',
      example: '1.234567800',
    }),
  })
  .meta({ id: 'UsageSums' });
export type UsageSums = z.output<typeof sumsSchema>;
/** Of no call. */
export const NO_USAGE = Object.fromEntries(
  Object.keys(sumsSchema.shape).map((name) => [name, name.endsWith('_usd') ? null : 0]),
) as UsageSums;

/** A group of calls and its sums; of the columns before the sums it has those in `group_by`. */
export const usageSchema = z
  .strictObject({
    month: period('Month in the time zone.', '2026-01'),
    week: period('First day, a Monday, of the week in the time zone.', '2026-01-26'),
    day: period('Day in the time zone.', '2026-01-31'),
    hour: period('Start of the hour, in UTC.', '2026-01-31T12:00:00Z'),
    half_hour: period('Start of the half hour, in UTC.', '2026-01-31T12:30:00Z'),
    minute: period('Start of the minute, in UTC.', '2026-01-31T12:34:00Z'),
    group: z.string().nullable().optional().meta({
      description: 'Present group of the team; null for calls of teams in none.',
      example: 'dev',
    }),
    team: z.string().nullable().optional().meta({
      description: 'Name of the team, also that of the key in groups by key; null if it no longer exists.',
      example: 'search',
    }),
    team_id: shownId('the team').optional(),
    key: z.string().nullable().optional().meta({
      description: 'Name of the key, unique within its team; null if the key no longer exists.',
      example: 'ci',
    }),
    key_prefix: z.string().nullable().optional().meta({
      description: 'First characters of the newest secret of the key; null if the key no longer exists.',
      example: 'ptn_4fGh7Kq2',
    }),
    key_id: shownId('the key').optional(),
    owner: z.string().nullable().optional().meta({
      description: 'Present owner of the key or its team; null for calls of keys without one.',
      example: 'jane@example.com',
    }),
    cost_center: z.string().nullable().optional().meta({
      description: 'Present cost center of the key or its team; null for calls of keys without one.',
      example: 'CC-4711',
    }),
    provider: z.string().optional().meta({ description: 'Name of the provider.', example: 'openai' }),
    model: z.string().nullable().optional().meta({
      description: 'Model; null for calls without one.',
      example: 'gpt-4o-mini',
    }),
    end_user: z
      .string()
      .nullable()
      .optional()
      .meta({ description: 'End user, as the client named it.', example: 'user-7' }),
    session: z
      .string()
      .nullable()
      .optional()
      .meta({ description: 'Session, as the client named it.', example: 'session-12' }),
    tags: z
      .record(z.string(), z.string().nullable())
      .optional()
      .meta({ description: 'Values of the tags in `group_by`.', example: { env: 'prod' } }),
    ...sumsSchema.shape,
    p50_ms: latency(
      'Median duration in milliseconds, estimated from classes of durations; null without calls.',
      850,
    ),
    p95_ms: latency('95th percentile of the duration in milliseconds, estimated in the same way.', 4200),
  })
  .meta({ id: 'Usage' });
/** With the names of its team and key. */
export type UsageView = z.output<typeof usageSchema>;

export const usagePageSchema = pageOf('UsagePage', usageSchema, {
  as_of: timestamp('Calls recorded until then are counted.'),
  source: z.enum(['log', 'archive']).meta({
    description:
      'Where the calls were counted: `log`, the sums and rows of Postgres; or `archive`, the sink that `REQUEST_LOG_ARCHIVE` ' +
      'names, if `from` or `to` is before what Postgres can count.',
  }),
  totals: sumsSchema.nullable().meta({
    description: 'Sums over all groups, also of the following pages; null on a page that continues another.',
  }),
});
/** A page of groups, of which `totals` holds the sums over all pages. */
export type UsagePage<T = UsageView> = Page<T> & { totals: UsageSums | null };
/** With what it counts. */
export type CountedUsage<T = UsageView> = UsagePage<T> & { as_of: string; source: 'log' | 'archive' };

const WORDS = [...INTERVALS, ...SLOT_GROUPS, ...ROW_GROUPS, 'tag:<name>'].join(', ');
/** Each is a column of the statement, and of its sort order. */
const MAX_GROUPS = 8;
const GROUPS = `must be 1 to ${MAX_GROUPS} of ${WORDS}, separated by commas, each once`;

const groups = z
  .string(GROUPS)
  .transform((text) => text.split(','))
  .refine((words) => words.length <= MAX_GROUPS, { error: GROUPS, abort: true })
  .refine((words): words is UsageGroup[] => words.every(isUsageGroup), GROUPS)
  .refine((words) => new Set(words).size === words.length, GROUPS);

const MAX_SERIES = 50;

const question = {
  group_by: groups.prefault('team,day').meta({
    description:
      'What to group by, separated by commas: group, team, key, owner, cost_center, provider, model, end_user, session, tag:<name>, and one period ' +
      '(see `interval`).',
    example: 'model,day',
  }),
  interval: z.enum(INTERVALS).optional().meta({
    description:
      'Period to group by. The same as its name in `group_by`. By `minute`, `from` must be at most 3 hours before `to`.',
  }),
  tz: z.string(TIME_ZONE_REMEDY).refine(isTimeZone, TIME_ZONE_REMEDY).optional().meta({
    description: 'Time zone in which days, weeks (from Monday) and months begin. Default: `REPORT_TIMEZONE`.',
    example: 'Europe/Berlin',
  }),
  sort: oneOf(USAGE_SORTS).optional().meta({
    description:
      'Figure to sort by, largest first. Absent: by the groups, newest period first. An archive cannot sort by `p95`.',
  }),
  ...callFilter,
};

const SERIES = `must be an integer from 1 to ${MAX_SERIES}`;

/** As many series as a chart shows, over all its periods. */
const series = z
  .string(SERIES)
  .regex(/^\d{1,2}$/, SERIES)
  .transform(Number)
  .refine((count) => count >= 1 && count <= MAX_SERIES, SERIES)
  .optional()
  .meta({
    description:
      'Only the rows of so many values of the first group that is no period: of those with the largest sums over the whole time, by ' +
      '`sort`, else by cost. `totals` are those of all values. For charts, with a period in `group_by`.',
    type: 'integer',
    minimum: 1,
    maximum: MAX_SERIES,
    example: 8,
  });

/** `GET /admin/v1/usage` and `postern usage` */
export const usageFilterSchema = withTimeRange(z.strictObject({ ...question, series, ...paging }));
export type UsageFilter = z.output<typeof usageFilterSchema>;

/** `GET /admin/v1/usage/export` and `postern usage --format csv` */
export const usageExportSchema = withTimeRange(z.strictObject(question));
export type UsageExportFilter = z.output<typeof usageExportSchema>;

const MONTH = 'must be a month such as 2026-10';

/** `GET /admin/v1/usage/statement` and `postern usage statement` */
export const statementFilterSchema = z.strictObject({
  team: callFilter.team.unwrap().meta({ description: 'Name or ID of the team.', example: 'search' }),
  month: z
    .string(MONTH)
    .regex(/^[1-9]\d{3}-(0[1-9]|1[0-2])$/, MONTH)
    .meta({ description: 'Month in the time zone.', example: '2026-10' }),
  tz: question.tz,
  format: z
    .enum(['json', 'csv'], 'must be json or csv')
    .default('json')
    .meta({ description: '`csv`: its lines as a table.', example: 'csv' }),
});
export type StatementFilter = z.output<typeof statementFilterSchema>;

const line = z.string().nullable();

/** What a team has used in a month, as it is counted now. */
export const statementSchema = z
  .strictObject({
    month: z.string().meta({ description: 'The month.', example: '2026-10' }),
    time_zone: z.string().meta({ description: 'Where it begins and ends.', example: 'Europe/Berlin' }),
    from: timestamp('Its first instant.'),
    to: timestamp('The first instant after it.'),
    is_over: z.boolean().meta({
      description: 'Whether the month has ended. Late rows and new prices may still change it.',
      example: true,
    }),
    as_of: timestamp('Calls recorded until then are counted.'),
    team: z.string().meta({ description: 'Name of the team.', example: 'search' }),
    team_id: shownId('the team'),
    group: line.meta({ description: 'Present group of the team.', example: 'dev' }),
    owner: line.meta({ description: 'Present owner of the team.', example: 'jane@example.com' }),
    cost_center: line.meta({ description: 'Present cost center of the team.', example: 'CC-4711' }),
    contact: line.meta({ description: 'Present contact of the team.', example: '#search' }),
    lines: z
      .array(usageSchema)
      .meta({ description: 'One for each key, provider and model; the dearest first.' }),
    totals: sumsSchema.meta({ description: 'Sums over all lines.' }),
  })
  .meta({ id: 'UsageStatement' });
export type Statement = z.output<typeof statementSchema>;
