import { z } from 'zod';
import {
  oneOf,
  pageOf,
  paging,
  searchText,
  shownId,
  timestamp,
  withTimeRange,
} from '../admin/fields.schema.js';
import { isTimeZone, TIME_ZONE_REMEDY } from '../platform/time-zone.js';
import { callFilter } from '../requests/requests.schema.js';

export const REFUSAL_GROUPS = ['team', 'key', 'code', 'limit', 'provider', 'model'] as const;
export type RefusalGroup = (typeof REFUSAL_GROUPS)[number];
export const REFUSAL_INTERVALS = ['minute', 'hour', 'day'] as const;
export type RefusalInterval = (typeof REFUSAL_INTERVALS)[number];

const GROUPS = `must be some of ${REFUSAL_GROUPS.join(', ')}, separated by commas`;

const code = z.string().meta({ description: 'Why: `x-gateway-error`.', example: 'insufficient_quota' });
const calls = z.int().meta({ description: 'Rejected requests.', example: 1_204 });
const lastAt = timestamp('When the last of them was rejected.');
const lastId = shownId('the last of them: its `x-gateway-request-id`');
const limit = z.string().nullable().meta({
  description: 'The limit or budget that rejected them, by whose it is; null: none, or it was removed.',
  example: 'search/ci usd/month',
});
const provider = z.string().nullable().meta({
  description: 'Where the call would have gone; null if that was not known yet.',
  example: 'openai',
});
const model = z.string().nullable().meta({
  description: 'Its model, for reasons that depend on it; at most 200 characters.',
  example: 'gpt-5',
});

/** Requests that were rejected for one reason. The members of groups that were not asked for are absent. */
const refusalSchema = z
  .strictObject({
    start: timestamp('Start of the interval.').optional(),
    team: z.string().nullable().optional().meta({
      description: 'Name of the team; null without a valid key.',
      example: 'search',
    }),
    team_id: shownId('the team').nullable().optional(),
    key: z.string().nullable().optional().meta({
      description:
        'Name of the key; null without a valid key; `(other)`: more reasons than a process counts by themselves in a minute.',
      example: 'ci',
    }),
    key_id: shownId('the key').nullable().optional(),
    code: code.optional(),
    limit: limit.optional(),
    limit_id: shownId('the limit').nullable().optional(),
    provider: provider.optional(),
    model: model.optional(),
    calls,
    last_at: lastAt,
    last_request_id: lastId,
  })
  .meta({ id: 'Refusal' });
export type RefusalView = z.output<typeof refusalSchema>;

export const refusalPageSchema = pageOf('RefusalPage', refusalSchema, {
  calls: calls.meta({ description: 'Rejected requests of all groups, also of those that are not shown.' }),
});
export type RefusalPage = z.output<typeof refusalPageSchema>;

/** `GET /admin/v1/refusals` */
export const refusalFilterSchema = withTimeRange(
  z.strictObject({
    group_by: z
      .string(GROUPS)
      .transform((text) => [...new Set(text.split(','))])
      .pipe(z.array(z.enum(REFUSAL_GROUPS, GROUPS)))
      .default(['key', 'code', 'limit'])
      .meta({
        description: `Groups, separated by commas: ${REFUSAL_GROUPS.join(', ')}.`,
        type: 'string',
        example: 'key,code,limit',
      }),
    interval: oneOf(REFUSAL_INTERVALS).optional().meta({
      description: 'Also by minute, hour or day. Counts that are older than 2 days are by hour.',
    }),
    tz: z
      .string(TIME_ZONE_REMEDY)
      .refine(isTimeZone, TIME_ZONE_REMEDY)
      .optional()
      .meta({ description: 'Time zone of days; absent: REPORT_TIMEZONE.', example: 'Europe/Berlin' }),
    team: callFilter.team.meta({ description: 'Only requests with keys of this team, by name or ID.' }),
    key: callFilter.key,
    code: searchText().optional().meta({ description: 'Only this reason.', example: 'insufficient_quota' }),
    from: callFilter.from,
    to: callFilter.to,
    limit: paging.limit.meta({ description: 'Maximum number of groups, the largest first.' }),
  }),
);
export type RefusalFilter = z.output<typeof refusalFilterSchema>;

/** `GET /self/v1/refusals` */
export const ownRefusalFilterSchema = withTimeRange(
  z.strictObject({ from: callFilter.from, to: callFilter.to }),
);
export type OwnRefusalFilter = z.output<typeof ownRefusalFilterSchema>;

export const ownRefusalsSchema = z
  .strictObject({
    data: z
      .array(
        z
          .strictObject({
            code,
            limit,
            provider,
            model,
            calls,
            last_at: lastAt,
            last_request_id: lastId,
          })
          .meta({ id: 'OwnRefusal' }),
      )
      .meta({ description: 'The most frequent reasons, at most 100.' }),
    calls: refusalPageSchema.shape.calls,
  })
  .meta({ id: 'OwnRefusals' });
export type OwnRefusals = z.output<typeof ownRefusalsSchema>;
