import { z } from 'zod';
import { EXAMPLE_TIME, oneOf, searchText, time, timestamp } from '../admin/fields.schema.js';
import { containsKeyFormat, SHOWN_LENGTH } from '../platform/api-key.js';

export const FOUND_KINDS = ['request', 'team', 'key', 'model', 'end_user', 'session'] as const;

const TEXT = `must be text of 1 to 200 printable characters; never send a whole key, but to POST /admin/v1/keys/find`;
const MAX_LENGTH = 200;
/** More than the characters of a key that are shown, or of another secret. */
const OVERLONG_PREFIX = new RegExp(`^pt[nrd]_[0-9A-Za-z_]{${SHOWN_LENGTH - 3},}$`);

/** `GET /admin/v1/search` */
export const searchSchema = z.strictObject({
  q: searchText(TEXT)
    .transform((text) => text.trim())
    .refine((text) => text.length > 0 && text.length <= MAX_LENGTH, TEXT)
    .refine((text) => !containsKeyFormat(text) && !OVERLONG_PREFIX.test(text), TEXT)
    .meta({
      description:
        'The ID of a call, also its `call_id`, or of a team or key; the ID that a provider gave its response; the first ' +
        `${SHOWN_LENGTH} characters of a key; a part of the name of a team, a key or a model; an end user or a session. ` +
        'Never send a whole key, but to `POST /admin/v1/keys/find`.',
      example: 'req_011CQ3b8',
    }),
  in: oneOf(['names', 'log']).optional().meta({
    description:
      '`names`: only IDs and names, which are found at once; `log`: only what the request log has no index for. Absent: both.',
  }),
  before: time().optional().meta({
    description: 'The log is searched up to this time: `log.from` of a search before, to continue it.',
    example: EXAMPLE_TIME,
  }),
});
export type SearchRequest = z.output<typeof searchSchema>;

const foundSchema = z
  .strictObject({
    kind: z.enum(FOUND_KINDS).meta({ description: 'What was found.' }),
    id: z.uuid().nullable().meta({
      description: 'Its ID; null for a model, an end user and a session, which have none.',
      example: null,
    }),
    name: z.string().meta({
      description: 'Its name; of a call the ID that the provider gave its response, or else its own ID.',
      example: 'gpt-4o-mini',
    }),
    team: z.string().nullable().meta({
      description: 'Name of the team of a key or a call; null for others, and for a call of a deleted team.',
      example: null,
    }),
    at: timestamp(
      'When the call began, or the newest call with this model, end user or session that the search met; null for others.',
    ).nullable(),
  })
  .meta({ id: 'Found' });
export type Found = z.output<typeof foundSchema>;

export const searchResultSchema = z
  .strictObject({
    data: z
      .array(foundSchema)
      .meta({ description: 'What was found, at most a few of each kind, the best first.' }),
    log: z
      .strictObject({
        from: timestamp('The log was searched from this time on.'),
        whole: z.boolean().meta({ description: 'Whether the log has no older rows.', example: false }),
      })
      .nullable()
      .meta({ description: 'What of the log was searched; null if it was not.' }),
  })
  .meta({ id: 'SearchResult' });
export type SearchResult = z.output<typeof searchResultSchema>;
