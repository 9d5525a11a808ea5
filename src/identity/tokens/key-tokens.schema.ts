import { z } from 'zod';
import { pageOf, paging, shownId, timestamp } from '../../admin/fields.schema.js';

const tokenSchema = z
  .strictObject({
    id: shownId('the token'),
    kind: z.enum(['exchange', 'sign_in']).meta({
      description: '`exchange`: for an identity token; `sign_in`: to a person who signed in from a client.',
    }),
    subject: z.string().meta({
      description: 'Whom it was issued to.',
      example: 'repo:acme/api:ref:refs/heads/main',
    }),
    trust: z.string().nullable().meta({
      description: 'The trust that issued it; null for a sign-in.',
      example: 'api-ci',
    }),
    created_at: timestamp('When it was issued.'),
    expires_at: timestamp('When it ends.'),
    last_used_at: timestamp(
      'When it was last used, updated with a delay of some seconds; null: never.',
    ).nullable(),
  })
  .meta({ id: 'IssuedToken' });
/** A token of a key that works now. */
export type TokenView = z.output<typeof tokenSchema>;

const issuingTrustSchema = z
  .strictObject({
    name: z.string().meta({ description: 'Name of the trust.', example: 'api-ci' }),
    last_used_at: timestamp(
      'When it last issued a token, updated with a delay of some seconds; null: never.',
    ).nullable(),
  })
  .meta({ id: 'IssuingTrust' });
/** What is shown of a trust to whoever sees the key that it issues tokens of. */
export type IssuingTrust = z.output<typeof issuingTrustSchema>;

/** `GET /admin/v1/keys/:id/tokens` */
export const tokenFilterSchema = z.strictObject(paging);

export const tokenPageSchema = pageOf('IssuedTokenPage', tokenSchema, {
  trusts: z
    .array(issuingTrustSchema)
    .meta({ description: 'The trusts that issue tokens of the key, by name; at most 100.' }),
});
