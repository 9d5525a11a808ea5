import { z } from 'zod';
import { isOfTeams, ROLES } from '../access/role.js';
import { TOKEN_SHOWN_LENGTH } from '../access/token-format.js';
import {
  EXAMPLE_EXPIRY,
  name,
  oneOf,
  pageOf,
  paging,
  pathId,
  shownId,
  team,
  time,
  timestamp,
} from '../fields.schema.js';

const ROLE_ABOUT =
  '`admin`: everything; `viewer`: read everything; `lead`: see its own teams and manage all their keys; `team`: see its own teams; ' +
  '`metrics`: only `GET /metrics`.';

/** A token as the API shows it, without its secret. */
const tokenSchema = z
  .strictObject({
    id: shownId('the token'),
    name: z.string().meta({
      description: 'Unique name; the audit log shows it as `token:<name>`.',
      example: 'prometheus',
    }),
    prefix: z.string().meta({
      description: `First ${TOKEN_SHOWN_LENGTH} characters of the token.`,
      example: 'pta_4fGh7Kq2',
    }),
    role: z.enum(ROLES).meta({ description: ROLE_ABOUT }),
    teams: z
      .array(
        z.strictObject({
          id: shownId('the team'),
          name: z.string().meta({ description: 'Name of the team.', example: 'search' }),
        }),
      )
      .nullable()
      .meta({ description: 'Teams of the roles `lead` and `team`; null for other roles.' }),
    created_at: timestamp('When the token was created.'),
    expires_at: timestamp('Expiry time; null if the token never expires.', EXAMPLE_EXPIRY).nullable(),
    last_used_at: timestamp('Last use, updated with a delay of up to a minute.').nullable(),
  })
  .meta({ id: 'AdminToken' });
export type TokenView = z.output<typeof tokenSchema>;

export const tokenPageSchema = pageOf('AdminTokenPage', tokenSchema);

/** A token with its secret, in the only response that contains it. */
export const issuedTokenSchema = tokenSchema
  .extend({
    token: z.string().meta({
      description: 'The token. Shown only in this response: Postern stores its digest.',
      example: 'pta_…',
    }),
  })
  .meta({ id: 'IssuedAdminToken' });
export type IssuedTokenView = z.output<typeof issuedTokenSchema>;

const TEAMS =
  'must be a list of one or more teams, by name or ID, for the roles lead and team; leave it out for others';

/** `POST /admin/v1/tokens` and `postern tokens create` */
export const newTokenSchema = z
  .strictObject({
    name: name().meta({ description: 'Unique name of the token.', example: 'prometheus' }),
    role: oneOf(ROLES).meta({ description: ROLE_ABOUT }),
    teams: z
      .array(team(), TEAMS)
      .min(1, TEAMS)
      .max(100, 'must not name more than 100 teams')
      .nullish()
      .default(null)
      .meta({
        description: 'Names or IDs of the teams, for the roles `lead` and `team`.',
        example: ['search'],
      }),
    expires_at: time()
      .refine(
        (at) => at.getTime() > Date.now(),
        'must be in the future; leave it out for a token that never expires',
      )
      .nullish()
      .default(null)
      .meta({
        description: 'Expiry time, in the future; null or absent: the token never expires.',
        example: EXAMPLE_EXPIRY,
      }),
  })
  .refine(({ role, teams }) => isOfTeams(role) === (teams !== null), { path: ['teams'], message: TEAMS })
  .meta({ id: 'NewAdminToken', example: { name: 'prometheus', role: 'metrics' } });
export type NewToken = z.output<typeof newTokenSchema>;

/** `GET /admin/v1/tokens` and `postern tokens list` */
export const tokenFilterSchema = z.strictObject(paging);
export type TokenFilter = z.output<typeof tokenFilterSchema>;

export const tokenId = pathId('token');
