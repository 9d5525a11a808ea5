import { z } from 'zod';
import {
  EXAMPLE_ID,
  EXAMPLE_TIME,
  id,
  withTimeRange,
  pageOf,
  paging,
  searchText,
  shownId,
  time,
  timestamp,
} from '../admin/fields.schema.js';
import { ACTIONS, SUBJECT_TYPES } from './record-change.js';

/** One of a list of values that modules can extend. Sorted: modules add theirs at the end. */
function oneOfOpen(words: ReadonlySet<string>, description: string) {
  return z
    .string()
    .refine((word) => words.has(word), {
      error: () => {
        const list = [...words].sort();
        return `must be ${list.slice(0, -1).join(', ')} or ${list.at(-1)}`;
      },
    })
    .meta({
      description,
      // Evaluated when the OpenAPI document is built.
      get enum() {
        return [...words].sort();
      },
    });
}

const settings = () => z.record(z.string(), z.unknown()).nullable();

/** One change, as the API shows it. */
const auditEntrySchema = z
  .strictObject({
    id: shownId('the entry; IDs sort by time'),
    at: timestamp('When the change was made.'),
    actor: z.string().meta({
      description:
        '`admin-token`, `token:<name>`, `sso:<user>`, `cli:<user of the operating system>`; `start` for the first team and key; ' +
        '`oidc-logout` and `oidc-check` for what the OpenID provider ends; `oauth-revoke` for whoever ends a token that they ' +
        'have; `failover` for what is put back after Postgres has lost it.',
      example: 'admin-token',
    }),
    client_ip: z.string().nullable().meta({
      description: 'Client address of an admin request; null for commands.',
      example: '192.0.2.7',
    }),
    action: oneOfOpen(ACTIONS, 'What was done.'),
    subject_type: oneOfOpen(SUBJECT_TYPES, 'Type of the object.'),
    subject_id: shownId('the object'),
    subject_name: z
      .string()
      .meta({ description: 'Name of the object at that time; of a key, `team/name`.', example: 'search' }),
    before: settings().meta({
      example: { disabled: false },
      description: 'Previous values of what changed; all values of a removed object; null for a new one.',
    }),
    after: settings().meta({
      example: { disabled: true },
      description: 'New values of what changed; all values of a new object; null for a removed one.',
    }),
  })
  .meta({ id: 'AuditEntry' });
export type AuditView = z.output<typeof auditEntrySchema>;

export const auditPageSchema = pageOf('AuditPage', auditEntrySchema);

/** `GET /admin/v1/audit` */
export const auditFilterSchema = withTimeRange(
  z.strictObject({
    actor: searchText().optional().meta({
      description: 'Only changes by this actor.',
      example: 'admin-token',
    }),
    action: oneOfOpen(ACTIONS, 'Only changes of this kind.').optional(),
    subject_type: oneOfOpen(SUBJECT_TYPES, 'Only changes of objects of this type.').optional(),
    subject_id: id('team, key or provider').optional().meta({
      description: 'Only changes of this team, key or provider.',
      example: EXAMPLE_ID,
    }),
    subject_name: searchText().optional().meta({
      description: 'Only changes of objects that had this name at that time.',
      example: 'search',
    }),
    from: time().optional().meta({ description: 'At this time or later.', example: EXAMPLE_TIME }),
    to: time().optional().meta({ description: 'Before this time.', example: EXAMPLE_TIME }),
    ...paging,
  }),
);
export type AuditFilter = z.output<typeof auditFilterSchema>;
