import { z } from 'zod';
import { ROLES } from '../access/role.js';
import { pageOf, paging, pathId, searchText, shownId, timestamp } from '../fields.schema.js';

/** A session as the API shows it. */
const adminSessionSchema = z
  .strictObject({
    id: shownId('the session'),
    actor: z.string().meta({
      description: 'Name of its user in the audit log.',
      example: 'sso:jane@example.com',
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
      .meta({ description: 'Teams that a user of the roles `lead` and `team` may see; null: all.' }),
    client_ip: z.string().nullable().meta({
      description: 'Client address of the sign-in.',
      example: '192.0.2.7',
    }),
    created_at: timestamp('When the user signed in.'),
    last_seen_at: timestamp('Last request, updated with a delay of up to a minute.'),
    expires_at: timestamp('When the session ends at the latest.'),
    current: z.boolean().meta({ description: 'Whether this request was sent with it.', example: false }),
  })
  .meta({ id: 'AdminSession' });
export type SessionView = z.output<typeof adminSessionSchema>;

export const sessionPageSchema = pageOf('AdminSessionPage', adminSessionSchema);

/** `GET /admin/v1/sessions` and `postern sessions list` */
export const sessionFilterSchema = z.strictObject({
  actor: searchText().optional().meta({
    description: 'Only sessions of this user, by the name in the audit log.',
    example: 'sso:jane@example.com',
  }),
  ...paging,
});
export type SessionFilter = z.output<typeof sessionFilterSchema>;

/** `DELETE /admin/v1/sessions` and `postern sessions end --actor` */
export const sessionsOfSchema = z.strictObject({
  actor: searchText().meta({
    description: 'The user whose sessions end, by the name in the audit log.',
    example: 'sso:jane@example.com',
  }),
});
export type SessionsOf = z.output<typeof sessionsOfSchema>;

/** `DELETE /admin/v1/sessions` */
export const endedSchema = z
  .strictObject({ ended: z.int().meta({ description: 'How many sessions ended.', example: 2 }) })
  .meta({ id: 'EndedSessions' });
export type Ended = z.output<typeof endedSchema>;

export const sessionId = pathId('session');
