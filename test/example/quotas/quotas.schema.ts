import { z } from 'zod';

const tokensPerDay = z.int().min(0).meta({ description: 'Prompt and completion tokens, added up.' });

export const newQuotaSchema = z.strictObject({ tokens_per_day: tokensPerDay });
export type NewQuota = z.output<typeof newQuotaSchema>;

export const quotaSchema = z.strictObject({ team_id: z.uuid(), tokens_per_day: tokensPerDay });
export type QuotaView = z.output<typeof quotaSchema>;

export const quotaListSchema = z.strictObject({ data: z.array(quotaSchema) });
