import { z } from 'zod';
import { shownId, timestamp } from '../admin/fields.schema.js';
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
      .meta({ description: 'The leaked secret or token.', example: 'ptn_…' }),
  })
  .meta({ id: 'LeakedSecret', example: { key: 'ptn_…' } });
export type LeakedSecret = z.output<typeof leakedSecretSchema>;

/** The key of a secret or token, what it is, and whether it still works. */
export const leakedKeySchema = keySchema
  .extend({
    status: z.enum(KEY_STATUSES).meta({ description: 'The keys of a disabled team are `disabled`.' }),
    kind: z.enum(['key', 'sign_in', 'exchange']).meta({
      description:
        '`key`: a secret of the key itself. Others are tokens: `sign_in` of a person who signed in from a client, `exchange` for an identity token.',
    }),
    subject: z.string().nullable().meta({
      description: 'Whom the token was issued to; null for a secret of the key.',
      example: 'repo:acme/api:ref:refs/heads/main',
    }),
    trust: z.string().nullable().meta({ description: 'The trust that issued the token.', example: 'api-ci' }),
    sign_in_id: shownId('the sign-in that the token was issued to').nullable(),
    secret_status: z.enum(['active', 'ended']).meta({
      description:
        "`ended`: this secret was rotated; or this token has expired, or does not work because its trust is disabled, its sign-in or person has ended, or its key was rotated. Independent of the key's status.",
    }),
    secret_expired: z.boolean().meta({
      description:
        'Whether `secret_expires_at` has passed, by the clock of Postgres. A token that was revoked has expired.',
    }),
    secret_expires_at: timestamp(
      "End of this secret's grace, null if it was not rotated; expiry time of a token.",
    ).nullable(),
  })
  .meta({ id: 'LeakedKey' });
export type LeakedKey = z.output<typeof leakedKeySchema>;
