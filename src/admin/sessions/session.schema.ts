import { z } from 'zod';
import { shownId, timestamp } from '../fields.schema.js';
import { ROLES } from '../access/role.js';

const TOKEN = 'must be ADMIN_TOKEN or a token of the admin API';

/** `POST /admin/v1/session` */
export const signInSchema = z
  .strictObject({
    token: z
      .string(TOKEN)
      .min(1, TOKEN)
      .max(1_024, TOKEN)
      .transform((text) => text.trim())
      .meta({ description: 'ADMIN_TOKEN or a token of the admin API.', example: 'pta_…' }),
  })
  .meta({ id: 'SignIn', example: { token: 'pta_…' } });
export type SignIn = z.output<typeof signInSchema>;

/** `GET /admin/v1/session` */
export const sessionStateSchema = z
  .strictObject({
    session: z
      .strictObject({
        actor: z.string().meta({ description: 'Name of the user in the audit log.', example: 'admin-token' }),
        user_id: z.string().meta({
          description:
            'The same user for good, whatever the name: `admin-token`, `token:<ID>` or `sso:<issuer>#<sub>`.',
          example: 'sso:https://login.example.com#8f2c0a',
        }),
        role: z.enum(ROLES).meta({ description: 'What the user may do.' }),
        teams: z
          .array(
            z.strictObject({
              id: shownId('the team'),
              name: z.string().meta({ description: 'Name of the team.', example: 'search' }),
            }),
          )
          .nullable()
          .meta({ description: 'Teams that a user of the role `team` may see; null: all.' }),
        created_at: timestamp('When the user signed in.'),
        expires_at: timestamp('When the session ends at the latest.'),
      })
      .nullable()
      .meta({ description: 'Null if nobody is signed in.' }),
    time_zone: z.string().meta({
      description: 'Time zone of days and times that are shown: `REPORT_TIMEZONE`.',
      example: 'Europe/Berlin',
    }),
  })
  .meta({ id: 'SessionState' });
export type SessionState = z.output<typeof sessionStateSchema>;
