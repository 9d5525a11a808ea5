import { z } from 'zod';
import { oneOf, pageOf, paging, searchText, shownId, timestamp, version } from '../../admin/fields.schema.js';

const personFields = {
  id: shownId('the person'),
  name: z.string().meta({
    description: 'What the OpenID provider calls the person: for people to read only.',
    example: 'Jane Doe',
  }),
  email: z.string().nullable().meta({
    description: 'E-mail address that the provider vouched for at the last sign-in; null if it did not.',
    example: 'jane@example.com',
  }),
  issuer: z.string().meta({ description: 'The OpenID provider.', example: 'https://login.example.com' }),
  subject: z.string().meta({
    description: 'The ID of the person there. It is never given to another person; e-mail addresses are.',
    example: '248289761001',
  }),
  created_at: timestamp('When the person first signed in, to the console or from a client.'),
  last_sign_in_at: timestamp(
    'When they last signed in, to the console or from a client; null: not yet.',
  ).nullable(),
  ended_at: timestamp(
    'Since when they may not sign in, and nothing of theirs works; null: they may.',
  ).nullable(),
  live_sign_ins: z.int().meta({ description: 'Sign-ins from clients that have not ended.', example: 2 }),
  spent_refused_at: timestamp(
    'When a refresh token of such a sign-in was last rejected because it had been used before: a second terminal that shares it, or somebody who has copied it; null: never.',
  ).nullable(),
  version: version(),
};

export const personSchema = z.strictObject(personFields).meta({ id: 'Person' });
export type PersonView = z.output<typeof personSchema>;
export const personPageSchema = pageOf('PersonPage', personSchema);

export const signInSchema = z
  .strictObject({
    id: shownId('the sign-in'),
    person_id: shownId('the person'),
    person: z.string().meta({ description: 'Name of the person.', example: 'Jane Doe' }),
    key_id: shownId('the key of the person in the team'),
    key: z.string().meta({ description: 'The key, as `team/name`.', example: 'search/jane@example.com' }),
    surface: z.string().meta({ description: 'The client, as it calls itself.', example: 'claude_code' }),
    client_ip: z
      .string()
      .nullable()
      .meta({ description: 'Where it began, as `REQUEST_LOG_CLIENT` says.', example: '192.0.2.7' }),
    program: z.string().nullable().meta({
      description: 'User-Agent of the client, as `REQUEST_LOG_CLIENT` says.',
      example: 'claude-code/2.1.330',
    }),
    created_at: timestamp('When it began.'),
    last_renewed_at: timestamp('When its tokens were last renewed.'),
    expires_at: timestamp('When the person must sign in again; a renewal may move it.'),
    ended_at: timestamp('When it ended; none of its tokens works since; null: it has not.').nullable(),
    end_reason: z.string().nullable().meta({
      description:
        'Why: `signed_out`, `too_many`, `ended`, `person_ended`, `no_team` (their groups name it no more), `provider` or `over` (its time); null: it has not.',
      example: 'ended',
    }),
    spent_refused_at: timestamp(
      'When a refresh token of it was last rejected because it had been used before; null: never.',
    ).nullable(),
  })
  .meta({ id: 'ClientSignIn' });
export type SignInView = z.output<typeof signInSchema>;
export const signInPageSchema = pageOf('SignInPage', signInSchema);

const ownKeySchema = z
  .strictObject({
    id: shownId('the key'),
    name: z.string().meta({ description: 'The key, as `team/name`.', example: 'search/notebook' }),
    origin: z.enum(['manual', 'sign_in']).meta({
      description:
        '`sign_in`: for tokens of sign-ins; `manual`: a key with a secret, which the end of the person revokes.',
    }),
  })
  .meta({ id: 'KeyOfPerson' });

/** `GET /admin/v1/people/:id` */
export const shownPersonSchema = z
  .strictObject({
    ...personFields,
    keys: z
      .array(ownKeySchema)
      .meta({ description: 'Keys of the person that are not revoked; at most 500.' }),
    blocked_teams: z.array(z.string()).meta({
      description:
        'Teams that they cannot sign in to from a client, because their key of sign-ins there was revoked. `POST /people/:id/reopen` lets them in again.',
      example: ['search'],
    }),
    sign_ins: z.array(signInSchema).meta({
      description: 'The last 100 sign-ins from clients, newest first. Ended ones are deleted after 90 days.',
    }),
  })
  .meta({ id: 'ShownPerson' });
export type ShownPerson = z.output<typeof shownPersonSchema>;
export type KeyOfPerson = z.output<typeof ownKeySchema>;

const STATES = ['active', 'ended'] as const;

/** `GET /admin/v1/people` */
export const personFilterSchema = z.strictObject({
  search: searchText()
    .optional()
    .meta({ description: 'Only people whose name or e-mail address has these words.', example: 'jane' }),
  state: oneOf(STATES)
    .optional()
    .meta({ description: '`ended`: only people who were ended; `active`: only others.' }),
  ...paging,
});
export type PersonFilter = z.output<typeof personFilterSchema>;

/** `GET /admin/v1/sign-ins` */
export const signInFilterSchema = z.strictObject({
  state: oneOf(STATES)
    .optional()
    .meta({ description: '`active`: only sign-ins that go on; `ended`: only others.' }),
  ...paging,
});
export type SignInFilter = z.output<typeof signInFilterSchema>;

/** A person in a path. */
export const personInPath = z
  .string()
  .meta({ description: 'ID or e-mail address of the person.', example: 'jane@example.com' });

/** What ended with a person. */
export const endedPersonSchema = z
  .strictObject({
    ...personFields,
    ended: z
      .strictObject({
        sign_ins: z.int().meta({ description: 'Sign-ins from clients.', example: 2 }),
        sessions: z.int().meta({ description: 'Sessions of the console.', example: 1 }),
        keys: z
          .int()
          .meta({ description: 'Keys of their own with a secret, which were revoked.', example: 1 }),
      })
      .meta({ description: 'What ended now.' }),
  })
  .meta({ id: 'EndedPerson' });
export type EndedPerson = z.output<typeof endedPersonSchema>;
