import { z } from 'zod';
import { isUuid } from '../database/page.js';
import { isShownPrefix, SHOWN_LENGTH } from '../platform/api-key.js';
import type { Column } from '../request-log/column.js';
import { COLUMNS, describeColumn } from '../request-log/columns.js';
import { filteredTags } from '../request-log/attribution.js';
import { OUTCOMES } from '../request-log/outcome.js';
import { statusesOf } from './request-query.js';
import { isShownName, type RequestView, SHOWN_COLUMNS } from './request-view.js';
import {
  EXAMPLE_ID,
  EXAMPLE_TIME,
  id,
  withTimeRange,
  oneOf,
  pageOf,
  paging,
  pathId,
  searchText,
  team,
  time,
  timestamp,
} from '../admin/fields.schema.js';

export const EXPORT_FORMATS = ['ndjson', 'csv'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

const DURATION = 'must be a number of milliseconds';
const STATUS = 'must be a status such as 429 or a class of them such as 5xx, or several separated by commas';
const TAG = 'must be name=value of a tag, or several separated by commas, given once';
const MAX_STATUSES = 100;
const KEY = `must be the id of a key or the first ${SHOWN_LENGTH} characters of its secret; never send a whole key`;
const ROWS = 'must be an integer from 1 to 1000000000, given once; leave it out for all';

const JSON_TYPES = {
  timestamptz: z.iso.datetime({ offset: true }),
  uuid: z.uuid(),
  text: z.string(),
  inet: z.string(),
  boolean: z.boolean(),
  smallint: z.int(),
  int: z.int(),
  bigint: z.int(),
  'bigint[]': z.string(),
  real: z.number(),
  jsonb: z.record(z.string(), z.union([z.number(), z.string()])),
  /** Text, so that a reader loses no digit of an amount. */
  numeric: z.string(),
};

/** Examples of columns that have none of their own. */
const EXAMPLES = {
  timestamptz: EXAMPLE_TIME,
  uuid: EXAMPLE_ID,
  text: null,
  inet: '192.0.2.7',
  boolean: true,
  smallint: 0,
  int: 120,
  bigint: 2_048,
  'bigint[]': '{}',
  real: 812.5,
  numeric: '0.000142500',
  jsonb: {},
};

/** What a name that is not a column of the table holds. */
const NAME_DESCRIPTIONS = {
  team: 'Present name of the team; null if it no longer exists.',
  key: 'Present name of the key, unique within its team; null if it no longer exists.',
};
const NAME_EXAMPLES = { team: 'search', key: 'ci' };

function columnSchema(name: keyof RequestView): z.ZodType {
  if (isShownName(name)) {
    return z.string().nullable().meta({ description: NAME_DESCRIPTIONS[name], example: NAME_EXAMPLES[name] });
  }
  const { type, values, nullMeans, example }: Column<unknown> = COLUMNS[name];
  const schema = values === undefined ? JSON_TYPES[type] : z.enum(values);
  return (nullMeans === undefined ? schema : schema.nullable()).meta({
    description: describeColumn(name),
    ...(values === undefined && { example: example ?? EXAMPLES[type] }),
  });
}

/** A row of the request log under its column names. */
export const requestSchema = z
  .strictObject(Object.fromEntries(SHOWN_COLUMNS.map((name) => [name, columnSchema(name)])))
  .meta({ id: 'Request' });

/** `GET /admin/v1/requests/:id` */
export const shownRequestSchema = requestSchema
  .extend({
    attempts: z.array(requestSchema).meta({
      description:
        'All attempts of the call, this one included, the first one first; empty if the call did not use a route.',
    }),
  })
  .meta({ id: 'ShownRequest' });
export type ShownRequest = RequestView & { attempts: RequestView[] };

export const requestPageSchema = pageOf('RequestPage', requestSchema, {
  source: z.enum(['log', 'archive', 'both']).meta({
    description:
      'Where the rows were read: the request log, or the sink that `REQUEST_LOG_ARCHIVE` names, which has older days.',
  }),
});

/** The filter of list, export and usage. */
export const callFilter = {
  group: searchText('must be the name or the id of a group').optional().meta({
    description: 'Only calls of the teams that are now in this group, by name or ID.',
    example: 'dev',
  }),
  team: team().optional().meta({ description: 'Only calls of this team, by name or ID.', example: 'search' }),
  key: z
    .string(KEY)
    .refine((text) => isUuid(text) || isShownPrefix(text), KEY)
    .optional()
    .meta({
      description: `Only calls with this key, by its ID or its first ${SHOWN_LENGTH} characters. Never send a whole key.`,
      example: 'ptn_4fGh7Kq2',
    }),
  owner: searchText().optional().meta({
    description: 'Only calls with the keys that now have this owner, of their own or of their team.',
    example: 'jane@example.com',
  }),
  cost_center: searchText().optional().meta({
    description: 'Only calls with the keys that now have this cost center, of their own or of their team.',
    example: 'CC-4711',
  }),
  provider: searchText().optional().meta({ description: 'Only calls to this provider.', example: 'openai' }),
  model: searchText().optional().meta({ description: 'Only calls for this model.', example: 'gpt-4o-mini' }),
  status: z
    .string(STATUS)
    .max(4 * MAX_STATUSES, STATUS)
    .refine((text) => statusesOf(text) !== null, STATUS)
    .transform((text) => statusesOf(text) ?? [])
    .optional()
    .meta({
      description:
        'Only calls with one of these HTTP statuses, such as `429`, or classes, such as `5xx`, separated by commas.',
      example: '429,5xx',
    }),
  outcome: oneOf(OUTCOMES).optional().meta({ description: 'Only calls with this outcome.' }),
  failed: oneOf(['true', 'false'])
    .transform((text) => text === 'true')
    .optional()
    .meta({
      description:
        'Only failed calls: with a status of 400 or above, or that the provider or the gateway did not complete; `false`: only others.',
    }),
  usage_final: oneOf(['true', 'false'])
    .transform((text) => text === 'true')
    .optional()
    .meta({
      description:
        '`false`: only calls whose usage was not read to the end, so that their cost is not known; `true`: only calls whose usage was.',
    }),
  provider_error: searchText().optional().meta({
    description: 'Only calls whose provider reported an error of this type or code.',
    example: 'insufficient_quota',
  }),
  min_duration_ms: z
    .string(DURATION)
    .regex(/^\d{1,9}$/, DURATION)
    .transform(Number)
    .optional()
    .meta({ description: 'Only calls that took this long or longer.', type: 'integer', example: 5_000 }),
  end_user: searchText().optional().meta({
    description: 'Only calls of this end user, as the request log stores it.',
    example: 'user-7',
  }),
  session: searchText()
    .optional()
    .meta({ description: 'Only calls of this session.', example: 'session-12' }),
  subject: searchText().optional().meta({
    description: 'Only calls with tokens that were issued to this subject, as the request log stores it.',
    example: 'repo:acme/api:ref:refs/heads/main',
  }),
  tag: searchText(TAG)
    .refine((text) => filteredTags(text) !== null, TAG)
    .transform((text) => filteredTags(text) ?? {})
    .optional()
    .meta({
      description:
        'Only calls with this tag of `x-gateway-tags`, or with all of several, separated by commas.',
      example: 'env=prod',
    }),
  provider_request_id: searchText().optional().meta({
    description:
      'Only calls whose response the provider gave this ID. Give `from`, too: the log has no index for it.',
    example: 'req_011CQ3b8',
  }),
  from: time()
    .optional()
    .meta({ description: 'Only calls that started at this time or later.', example: EXAMPLE_TIME }),
  to: time()
    .optional()
    .meta({ description: 'Only calls that started before this time.', example: EXAMPLE_TIME }),
  recorded_after: time().optional().meta({
    description: 'Only rows written to the database after this time; for incremental export.',
    example: EXAMPLE_TIME,
  }),
};

/** `GET /admin/v1/requests` and `postern requests list` */
export const requestFilterSchema = withTimeRange(z.strictObject({ ...callFilter, ...paging }));
export type CallFilter = z.output<typeof requestFilterSchema>;

/** `GET /admin/v1/requests/export` and `postern requests export` */
export const exportSchema = withTimeRange(
  z.strictObject({
    ...callFilter,
    format: oneOf(EXPORT_FORMATS).default('ndjson').meta({
      description: '`ndjson`: one JSON object per line; `csv`: a table.',
    }),
    limit: z
      .string(ROWS)
      .regex(/^[1-9]\d{0,9}$/, ROWS)
      .transform(Number)
      .refine((limit) => limit <= 1_000_000_000, ROWS)
      .optional()
      .meta({
        description: 'Maximum number of rows; absent: all.',
        type: 'integer',
        minimum: 1,
        example: 1_000,
      }),
    cursor: paging.cursor,
  }),
);
export type ExportOptions = z.output<typeof exportSchema>;

export const requestId = pathId('call: its `x-gateway-request-id`');

/** `GET /admin/v1/requests/recorded` */
export const recordedFilterSchema = z
  .strictObject({
    ...callFilter,
    recorded_after: callFilter.recorded_after.meta({
      description:
        'Only rows written to the database after this time; absent: no rows, only `recorded_until`.',
    }),
    after_id: id('call').optional().meta({
      description: 'Also rows written at exactly `recorded_after` that have a greater ID than this one.',
      example: EXAMPLE_ID,
    }),
    limit: paging.limit,
  })
  .omit({ from: true, to: true });
export type RecordedFilter = z.output<typeof recordedFilterSchema>;

export const recordedSchema = z
  .strictObject({
    data: z.array(requestSchema).meta({ description: 'The calls, in the order in which they were written.' }),
    recorded_until: timestamp('Every row written up to this time can be read.'),
  })
  .meta({ id: 'RecordedRequests' });
/** Calls in the order in which they were written to the database. */
export interface Recorded {
  data: RequestView[];
  recorded_until: string;
}
