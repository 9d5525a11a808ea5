import { z } from 'zod';
import { fields } from '../../../src/index.js';

const tokensPerDay = z
  .int()
  .min(0)
  .meta({ description: 'Prompt and completion tokens, added up.', example: 1_000_000 });

export const newQuotaSchema = z.strictObject({ tokens_per_day: tokensPerDay }).meta({ id: 'NewQuota' });
export type NewQuota = z.output<typeof newQuotaSchema>;

export const quotaSchema = z
  .strictObject({ team_id: fields.shownId('the team'), tokens_per_day: tokensPerDay })
  .meta({ id: 'Quota' });
export type QuotaView = z.output<typeof quotaSchema>;

export const quotaListSchema = z
  .strictObject({ data: z.array(quotaSchema).meta({ description: 'The quotas, by team.' }) })
  .meta({ id: 'QuotaList' });

/** The ID in the path. It is not validated: no team has one that is no ID. */
export const teamId = fields.pathId('team');
