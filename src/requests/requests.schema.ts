import { z } from 'zod';
import { isUuid } from '../database/page.js';
import { isShownPrefix, SHOWN_LENGTH } from '../platform/api-key.js';
import { OUTCOMES } from '../request-log/request-log.entity.js';
import { STATUS_FILTER } from './request-query.js';
import { oneOf, pageOf, paging, pathId, searchText, team, time, timestamp } from '../admin/fields.schema.js';

export const EXPORT_FORMATS = ['ndjson', 'csv'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

const STATUS = 'must be a status such as 429, or a class of them such as 5xx';
const KEY = `must be the id of a key or the first ${SHOWN_LENGTH} characters of its secret; never send a whole key`;
const ROWS = 'must be an integer from 1 to 1000000000, given once; leave it out for all';

const bytes = (description: string) => z.int().nullable().meta({ description });
const tokens = (description: string) =>
  z
    .int()
    .nullable()
    .meta({ description: `${description} As reported by the provider; null if it reported none.` });
const milliseconds = (description: string) => z.number().nullable().meta({ description });
const text = (description: string) => z.string().nullable().meta({ description });

/** A row of the request log under its column names. */
export const requestSchema = z
  .strictObject({
    id: z.uuid().meta({ description: 'Also the `x-gateway-request-id` of the response.' }),
    started_at: timestamp(),
    recorded_at: timestamp('When the row was written to the database.'),
    team_id: z.uuid(),
    key_id: z.uuid(),
    provider: z.string().meta({ example: 'openai' }),
    method: z.string().meta({ example: 'POST' }),
    path: text('Path without the query.').meta({ example: '/v1/chat/completions' }),
    model: text('Model named in the request.').meta({ example: 'gpt-4o-mini' }),
    streamed: z.boolean().meta({ description: 'Whether the response was a stream of events.' }),
    status: z.int().nullable().meta({
      description: 'HTTP status sent to the client; null if none was sent.',
      example: 200,
    }),
    outcome: z.enum(OUTCOMES).meta({ description: 'How the call ended.' }),
    error_code: text('Code of the error, if the call failed.'),
    request_bytes: bytes('Size of the request body.'),
    response_bytes: bytes('Size of the response body sent to the client.'),
    ttfb_ms: milliseconds('Time to the head of the response, in milliseconds.'),
    duration_ms: milliseconds('Time to the last byte, in milliseconds.'),
    prompt_tokens: tokens('Input tokens.'),
    completion_tokens: tokens('Output tokens.'),
    cached_tokens: tokens('Input tokens read from the cache.'),
    reasoning_tokens: tokens('Output tokens used for reasoning.'),
    provider_request_id: text("The provider's own request ID."),
    idempotency_key: text('Value of the `Idempotency-Key` header.'),
    sdk_retry_count: z.int().nullable().meta({ description: 'Which retry of the SDK this call was.' }),
    client_ip: text('Client address, as REQUEST_LOG_CLIENT allows.').meta({ example: '192.0.2.7' }),
    user_agent: text('User agent of the client, as REQUEST_LOG_CLIENT allows.'),
  })
  .meta({ id: 'Request' });
export type RequestView = z.output<typeof requestSchema>;

export const requestPageSchema = pageOf('RequestPage', requestSchema);

/** Which calls: the same for list, export and usage. */
export const callFilter = {
  team: team().optional().meta({ description: 'Only calls of this team, by name or ID.' }),
  key: z
    .string(KEY)
    .refine((text) => isUuid(text) || isShownPrefix(text), KEY)
    .optional()
    .meta({
      description: `Only calls with this key, by its ID or its first ${SHOWN_LENGTH} characters. Never send a whole key.`,
    }),
  provider: searchText().optional().meta({ description: 'Only calls to this provider.' }),
  model: searchText().optional().meta({ description: 'Only calls for this model.' }),
  status: z.string(STATUS).regex(STATUS_FILTER, STATUS).optional().meta({
    description: 'Only calls with this HTTP status, such as `429`, or this class, such as `5xx`.',
  }),
  outcome: oneOf(OUTCOMES).optional().meta({ description: 'Only calls with this outcome.' }),
  from: time().optional().meta({ description: 'Only calls that started at this time or later.' }),
  to: time().optional().meta({ description: 'Only calls that started before this time.' }),
  recorded_after: time().optional().meta({
    description: 'Only rows written to the database after this time; for incremental export.',
  }),
};

/** `GET /admin/v1/requests` and `postern requests list` */
export const requestFilterSchema = z.strictObject({ ...callFilter, ...paging });
export type CallFilter = z.output<typeof requestFilterSchema>;

/** `GET /admin/v1/requests/export` and `postern requests export` */
export const exportSchema = z.strictObject({
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
    .meta({ description: 'Maximum number of rows; absent: all.', type: 'integer', minimum: 1 }),
  cursor: paging.cursor,
});
export type ExportOptions = z.output<typeof exportSchema>;

export const requestId = pathId('call: its `x-gateway-request-id`');

const LINES = 'must be an integer from 0 to 500';

/** `postern requests tail`: what comes, so without times. */
export const tailSchema = z
  .strictObject({
    ...callFilter,
    lines: z
      .string(LINES)
      .regex(/^\d{1,3}$/, LINES)
      .transform(Number)
      .refine((lines) => lines <= 500, LINES)
      .default(10),
  })
  .omit({ from: true, to: true, recorded_after: true });
