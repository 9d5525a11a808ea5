import { z } from 'zod';
import {
  EXAMPLE_ID,
  id,
  oneOf,
  pageOf,
  paging,
  pathId,
  searchText,
  shownId,
  team,
  timestamp,
  version,
} from '../admin/fields.schema.js';
import { sharedLimitMembers, shownLimitMembers } from '../limit-rules/limit-rules.schema.js';
import {
  BUDGET_MODES,
  LIMIT_OWNERS,
  LIMIT_PERIODS,
  LIMIT_RESOURCES,
  LIMIT_SCOPES,
  UNPRICED_MODES,
} from '../limit-rules/limit-rule.entity.js';

const LIMIT_STATES = ['ok', 'warned', 'exhausted', 'blocking'] as const;

const AMOUNT = 'As a decimal, in USD for `usd`.';

/** A limit or budget and what was used of it in its present period. */
export const limitSchema = z
  .strictObject({
    id: shownId('the limit'),
    scope: z.enum(LIMIT_SCOPES).meta({
      description:
        'Whose it is; `…_end_user`, `…_session`: each end user or session of its calls has the amount for itself.',
      example: 'team',
    }),
    group: z
      .string()
      .nullable()
      .meta({ description: 'Name of the group; null for a limit of another owner.', example: null }),
    team: z.string().nullable().meta({
      description: 'Name of the team; null for a limit of a group or the installation.',
      example: 'search',
    }),
    key: z
      .string()
      .nullable()
      .meta({ description: 'Name of the key; null for a limit of a team.', example: 'ci' }),
    owner_id: shownId('the team, key or group; zeros for the installation'),
    providers: z
      .array(z.string())
      .nullable()
      .meta({ description: 'Only calls to these providers count; null: all.', example: ['openai'] }),
    models: z
      .array(z.string())
      .nullable()
      .meta({ description: 'Only calls of these models count; null: all.', example: ['claude-opus-*'] }),
    subject: z.string().nullable().meta({
      description:
        'Keyed hash of the end user or session that used most; null for a limit of the calls together, or that nobody used yet. The other figures are those of this end user or session.',
      example: 'n4bQgYhMfWWaL-qgxVrQFa',
    }),
    resource: z.enum(LIMIT_RESOURCES).meta({ description: 'What is limited.' }),
    period: z.enum(LIMIT_PERIODS).meta({
      description: '`minute`: any 60 seconds; `at_once`: at the same time; else the period of a budget.',
    }),
    mode: z.enum(BUDGET_MODES).meta({ description: '`block` rejects calls; `warn` only counts.' }),
    unpriced: z.enum(UNPRICED_MODES).nullable().meta({
      description:
        'What a budget in USD does with calls without a price: `reject`; `allow`: they pass, and `used` leaves them out. Null for what is not in USD.',
      example: 'reject',
    }),
    amount: z.string().meta({ description: `The limit. ${AMOUNT}`, example: '500.00' }),
    credited: z
      .string()
      .meta({ description: `What resets have added in this period. ${AMOUNT}`, example: '0.00' }),
    used: z.string().meta({
      description: `The charges of calls in the request log, or what was used in the last minute or is in use. ${AMOUNT}`,
      example: '123.45',
    }),
    held: z.string().meta({ description: `Reserved by gateways for calls. ${AMOUNT}`, example: '1.20' }),
    left: z
      .string()
      .meta({ description: `What is neither used nor held; not below 0. ${AMOUNT}`, example: '375.35' }),
    refused: z.int().meta({ description: 'Calls rejected by it in this period.', example: 0 }),
    last_rejected_at: timestamp(
      'When it last rejected a call in this period; null if it rejected none, or was reset since.',
    ).nullable(),
    last_needed: z
      .string()
      .nullable()
      .meta({
        description: `What that call would have used. ${AMOUNT} Null if it is not known.`,
        example: '0.00207',
      }),
    state: z.enum(LIMIT_STATES).meta({
      description:
        '`blocking`: it rejects calls: too little is left for the last one that it rejected, and it has admitted none since; `exhausted`: nothing is left; `warned`: used up to one of its `alert_at` percentages.',
    }),
    resets_at: timestamp('When the budget resets; null if it never does, and for other limits.').nullable(),
  })
  .meta({ id: 'Limit' });
export type LimitView = z.output<typeof limitSchema>;

export const limitPageSchema = pageOf('LimitPage', limitSchema);

/** `GET /admin/v1/limits` */
export const limitFilterSchema = z.strictObject({
  team: team()
    .optional()
    .meta({ description: 'Only limits of this team and its keys, by name or ID.', example: 'search' }),
  key: searchText().optional().meta({ description: 'Only limits of this key, by ID.', example: EXAMPLE_ID }),
  id: id('limit').optional().meta({ description: 'Only this limit.', example: EXAMPLE_ID }),
  scope: oneOf(LIMIT_OWNERS)
    .optional()
    .meta({ description: 'Only limits of the installation, of groups, of teams or of keys.' }),
  provider: searchText()
    .optional()
    .meta({ description: 'Only limits that name this provider.', example: 'openai' }),
  model: searchText()
    .optional()
    .meta({ description: 'Only limits of some models that count this one.', example: 'claude-opus-4-5' }),
  state: oneOf(LIMIT_STATES).optional().meta({ description: 'Only limits in this state.' }),
  ...paging,
});
export type LimitFilter = z.output<typeof limitFilterSchema>;

const REASON = 'must be text of 1 to 200 printable characters: why the budget is reset';

/** `POST /admin/v1/limits/:id/reset` */
export const limitResetSchema = z
  .strictObject({
    reason: searchText(REASON)
      .refine((text) => text.length <= 200, REASON)
      .meta({ description: 'Why; recorded in the audit log.', example: 'budget of the pilot extended' }),
    subject: searchText().optional().meta({
      description: 'Only this end user or session, as `GET /admin/v1/limits` shows it; absent: all of them.',
      example: 'n4bQgYhMfWWaL-qgxVrQFa',
    }),
  })
  .meta({ id: 'LimitReset', example: { reason: 'budget of the pilot extended' } });
export type LimitReset = z.output<typeof limitResetSchema>;

export const limitId = pathId('limit');

/** The limits of the installation. */
export const installationLimitsSchema = z
  .strictObject({ id: shownId('the installation: zeros'), ...shownLimitMembers, version: version() })
  .meta({ id: 'InstallationLimits' });
export type InstallationLimits = z.output<typeof installationLimitsSchema>;

/** `PATCH /admin/v1/limits/installation` */
export const installationChangeSchema = z.strictObject(sharedLimitMembers).meta({
  id: 'InstallationLimitsChange',
  example: { budgets: [{ usd: '5000.00', period: 'month', providers: ['openai'] }] },
});
export type InstallationChange = z.output<typeof installationChangeSchema>;

const triedOwner = oneOf(LIMIT_OWNERS).meta({ description: 'Whose budgets they would be.' });

/** `POST /admin/v1/limits/preview` */
export const limitPreviewSchema = z
  .strictObject({
    owner: triedOwner,
    owner_id: z.uuid('must be the ID of the owner').optional().meta({
      description: 'The team, key or group; absent for the installation.',
      example: EXAMPLE_ID,
    }),
    budgets: sharedLimitMembers.budgets
      .unwrap()
      .unwrap()
      .meta({ description: 'The budgets.', example: [{ usd: '100', period: 'day' }] }),
  })
  .refine(({ owner, owner_id: id }) => (owner === 'installation') === (id === undefined), {
    path: ['owner_id'],
    error: 'give the ID of the team, key or group; none for the installation',
  })
  .meta({ id: 'LimitPreview', example: { owner: 'installation', budgets: [{ usd: '100', period: 'day' }] } });
export type LimitPreview = z.output<typeof limitPreviewSchema>;

/** What budgets would have done to the calls of the last 7 days. */
export const limitPreviewResultSchema = z
  .strictObject({
    data: z
      .array(
        z.strictObject({
          calls: z
            .int()
            .meta({ description: 'Calls of the last 7 days that it would have counted.', example: 1200 }),
          rejected: z.int().meta({
            description:
              'Those of them for which too little of the amount would have been left, at what they cost.',
            example: 40,
          }),
        }),
      )
      .meta({
        description: 'One for each budget, in their order.',
        example: [{ calls: 1200, rejected: 40 }],
      }),
  })
  .meta({ id: 'LimitPreviewResult' });
export type LimitPreviewResult = z.output<typeof limitPreviewResultSchema>;
