import { z } from 'zod';
import { COLUMNS } from '../request-log/columns.js';
import { SUMMED, USAGE_GROUPS, USAGE_SORTS, type UsageGroup } from './usage-query.js';
import type { Page } from '../database/page.js';
import { oneOf, pageOf, paging } from '../admin/fields.schema.js';
import { callFilter } from './requests.schema.js';

const count = (description: string) => z.int().meta({ description });

const sums = Object.fromEntries(
  SUMMED.map((name) => [name, count(`Sum: ${COLUMNS[name].description}`)]),
) as Record<(typeof SUMMED)[number], z.ZodInt>;

const sumsSchema = z
  .strictObject({
    calls: count('Number of calls.'),
    errors: count('Calls that failed; a client that disconnected is no error.'),
    calls_without_tokens: count(
      'Calls without token counts from the provider, failed ones included. They add nothing to the token sums.',
    ),
    total_tokens: count('Sum of `prompt_tokens` and `completion_tokens`.'),
    ...sums,
  })
  .meta({ id: 'UsageSums' });
export type UsageSums = z.output<typeof sumsSchema>;

/** A group of calls and its sums; of the columns before the sums it has those in `group_by`. */
export const usageSchema = z
  .strictObject({
    day: z.string().optional().meta({ description: 'UTC day.', example: '2031-01-31' }),
    hour: z
      .string()
      .optional()
      .meta({ description: 'Start of the UTC hour.', example: '2031-01-31T12:00:00Z' }),
    team: z.string().nullable().optional().meta({
      description: 'Name of the team, or of the team of the key; null if it no longer exists.',
    }),
    team_id: z.uuid().optional(),
    key: z.string().nullable().optional().meta({
      description: 'Name, unique within the team; null if the key no longer exists.',
    }),
    key_id: z.uuid().optional(),
    key_prefix: z.string().nullable().optional().meta({
      description: "First characters of the key's newest secret; null if the key no longer exists.",
    }),
    provider: z.string().optional().meta({ example: 'openai' }),
    model: z.string().nullable().optional().meta({ example: 'gpt-4o-mini' }),
    ...sumsSchema.shape,
  })
  .meta({ id: 'Usage' });
/** With the names of its team and key. */
export type UsageView = z.output<typeof usageSchema>;

export const usagePageSchema = pageOf('UsagePage', usageSchema)
  .extend({
    totals: sumsSchema.nullable().meta({
      description:
        'Sums over all groups, also of the following pages; null on a page that continues another.',
    }),
  })
  .meta({ id: 'UsagePage' });
export type UsagePage<T = UsageView> = Page<T> & { totals: UsageSums | null };

const GROUPS = `must be one or more of ${USAGE_GROUPS.join(', ')}, separated by commas, each once`;

const groups = z
  .string(GROUPS)
  .transform((text) => text.split(','))
  .refine(
    (words): words is UsageGroup[] =>
      words.every((word) => (USAGE_GROUPS as readonly string[]).includes(word)),
    GROUPS,
  )
  .refine((words) => new Set(words).size === words.length, GROUPS)
  .refine((words) => !(words.includes('day') && words.includes('hour')), 'must hold day or hour, not both');

/** `GET /admin/v1/usage` and `postern usage` */
export const usageFilterSchema = z.strictObject({
  group_by: groups.prefault('team,day').meta({
    description:
      'Columns to group by, separated by commas: team, key, provider, model, and either day or hour.',
    example: 'model,day',
  }),
  sort: oneOf(USAGE_SORTS).optional().meta({
    description: 'Sum to sort by, largest first; absent: by the groups, newest day or hour first.',
  }),
  ...callFilter,
  ...paging,
});
export type UsageFilter = z.output<typeof usageFilterSchema>;
