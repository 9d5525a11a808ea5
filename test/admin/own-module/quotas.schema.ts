import { z } from 'zod';
import { pageOf } from '../../../src/admin/fields.schema.js';

export const quotaSchema = z
  .strictObject({
    team_id: z.uuid(),
    calls_per_day: z.int().meta({ description: 'Calls that the team may make in a day.' }),
  })
  .meta({ id: 'Quota' });
export type Quota = z.output<typeof quotaSchema>;

export const quotaPageSchema = pageOf('QuotaPage', quotaSchema);

/** `POST /admin/v1/quotas` */
export const newQuotaSchema = z
  .strictObject({
    team_id: z.uuid('must be the id of a team').meta({ description: 'ID of the team.' }),
    calls_per_day: z.int('must be an integer above 0').min(1, 'must be an integer above 0'),
  })
  .meta({
    id: 'NewQuota',
    example: { team_id: '01890a5d-ac96-774b-bcce-b302099a8057', calls_per_day: 1000 },
  });
export type NewQuota = z.output<typeof newQuotaSchema>;
