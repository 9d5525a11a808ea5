import { z } from 'zod';
import { COLUMNS } from '../request-log/columns.js';
import { SUMMED, USAGE_GROUPS, type UsageGroup } from './usage-query.js';
import { pageOf, paging } from '../admin/fields.schema.js';
import { callFilter } from './requests.schema.js';

const count = (description: string) => z.int().meta({ description });

const sums = Object.fromEntries(
  SUMMED.map((name) => [name, count(`Sum: ${COLUMNS[name].description}`)]),
) as Record<(typeof SUMMED)[number], z.ZodInt>;

/** A group of calls and its sums; of the columns before the sums it has those in `group_by`. */
export const usageSchema = z
  .strictObject({
    day: z.string().optional().meta({ description: 'UTC day.', example: '2031-01-31' }),
    hour: z
      .string()
      .optional()
      .meta({ description: 'Start of the UTC hour.', example: '2031-01-31T12:00:00Z' }),
    team: z.string().nullable().optional().meta({ description: 'Name; null if the team no longer exists.' }),
    team_id: z.uuid().optional(),
    key: z.string().nullable().optional().meta({ description: 'Name; null if the key no longer exists.' }),
    key_id: z.uuid().optional(),
    provider: z.string().optional().meta({ example: 'openai' }),
    model: z.string().nullable().optional().meta({ example: 'gpt-4o-mini' }),
    calls: count('Number of calls.'),
    errors: count('Calls that failed; a client that disconnected is no error.'),
    ...sums,
    unpriced_calls: count('Calls with token counts and without a cost, for example because their model has no price.'),
    cost_usd: z.string().nullable().meta({
      description: 'Exact sum of the costs in USD; null if no call has one.',
      example: '12.345678900',
    }),
  })
  .meta({ id: 'Usage' });
/** With the names of its team and key. */
export type UsageView = z.output<typeof usageSchema>;

export const usagePageSchema = pageOf('UsagePage', usageSchema);

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
  ...callFilter,
  ...paging,
});
export type UsageFilter = z.output<typeof usageFilterSchema>;
