import { z } from 'zod';
import { USAGE_GROUPS, type UsageGroup } from './usage-query.js';
import { paging } from '../admin/fields.schema.js';
import { callFilter } from './requests.schema.js';

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
export const usageSchema = z.strictObject({
  group_by: groups.default(['team', 'day']),
  ...callFilter,
  ...paging,
});
