import { z } from 'zod';
import { timestamp } from '../admin/fields.schema.js';
import { KEY_STATUSES, keySchema } from './keys.schema.js';

const SECRET = 'must be a whole gateway key';

/** `POST /admin/v1/keys/find` */
export const leakedSecretSchema = z
  .strictObject({
    key: z
      .string(SECRET)
      .min(1, SECRET)
      .max(1_024, SECRET)
      // A secret copied out of a log may come with spaces and line ends.
      .transform((text) => text.trim())
      .meta({ description: 'The leaked secret.', example: 'ptn_…' }),
  })
  .meta({ id: 'LeakedSecret', example: { key: 'ptn_…' } });
export type LeakedSecret = z.output<typeof leakedSecretSchema>;

/** The key of a secret, and whether the secret still works. */
export const leakedKeySchema = keySchema
  .extend({
    status: z.enum(KEY_STATUSES).meta({ description: 'The keys of a disabled team are `disabled`.' }),
    secret_status: z.enum(['active', 'ended']).meta({
      description: "`ended`: this secret was rotated and no longer works, independent of the key's status.",
    }),
    secret_expires_at: timestamp("End of this secret's grace; null if it was not rotated.").nullable(),
  })
  .meta({ id: 'LeakedKey' });
export type LeakedKey = z.output<typeof leakedKeySchema>;
