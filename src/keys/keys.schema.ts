import { z } from 'zod';
import { isUuid } from '../database/page.js';
import {
  EXAMPLE_EXPIRY,
  EXAMPLE_ID,
  EXAMPLE_TIME,
  flag,
  name,
  oneOf,
  pageOf,
  paging,
  pathId,
  searchText,
  shownId,
  team,
  time,
  timestamp,
  version,
} from '../admin/fields.schema.js';
import { containsKeyFormat, SHOWN_LENGTH } from '../platform/api-key.js';
import { limitMembers, shownLimitMembers } from '../limit-rules/limit-rules.schema.js';
import { ON_DISCONNECT, ON_DISCONNECT_ABOUT } from '../providers/on-disconnect.js';
import { PROVIDER_NAME } from '../providers/provider-name.js';
import {
  annotationFilters,
  annotationsChange,
  annotationsView,
  newAnnotations,
} from '../teams/annotations.js';
import { modelRulesChange, modelRulesView, newModelRules } from '../teams/model-rules.js';
import { ENDPOINT_RULES, IDEMPOTENCY_MODES, KEY_ORIGINS } from './gateway-key.entity.js';
import { CACHE_ABOUT, keyCacheSchema, newKeyCacheSchema } from './key-cache-settings.js';

export const KEY_STATUSES = ['active', 'disabled', 'expired', 'revoked'] as const;
export type KeyStatus = (typeof KEY_STATUSES)[number];

const PROVIDERS_ABOUT =
  'Names of the providers and routes the key may use, of those that its team may use; null allows all of these.';
const ENDPOINTS_ABOUT =
  '`inference` allows only the inference endpoints; `own` also allows files, batches and all other endpoints at providers that ' +
  'belong to the team; `all` allows them at every provider, where all its teams share them.';
const IDEMPOTENCY_ABOUT =
  '`forward` passes `Idempotency-Key` on; `replay` also answers repeated calls from the stored response.';
const WEBSOCKETS_ABOUT =
  'Whether the key may open WebSockets on `/v1/realtime` and `/v1/responses`; otherwise they get 426.';
const KEY_ON_DISCONNECT_ABOUT = `${ON_DISCONNECT_ABOUT} Null: as the provider of the call says.`;
const DISABLED_ABOUT = 'Calls with a disabled key are rejected.';

/** A key as the API shows it, without its secret. */
export const keySchema = z
  .strictObject({
    id: shownId('the key'),
    name: z.string().meta({ description: 'Unique within the team, revoked keys included.', example: 'ci' }),
    team: z.string().meta({ description: 'Name of the team.', example: 'search' }),
    team_id: shownId('its team'),
    prefix: z
      .string()
      .nullable()
      .meta({
        description: `First ${SHOWN_LENGTH} characters of the newest secret; null if the key has none.`,
        example: 'ptn_4fGh7Kq2',
      }),
    created_at: timestamp('When the key was created.'),
    previous_secret_expires_at: timestamp(
      'When the previous secret stops working after a rotation; null if it does not work any more.',
      EXAMPLE_EXPIRY,
    ).nullable(),
    expires_at: timestamp('Expiry time; null if the key never expires.', EXAMPLE_EXPIRY).nullable(),
    latest_expiry: timestamp(
      'Of a key that needs recent sign-ins of its owner: until when they move `expires_at`, at most. Null for other keys.',
      EXAMPLE_EXPIRY,
    ).nullable(),
    last_used_at: timestamp(
      'Last use of any of its secrets, updated with a delay of some seconds.',
    ).nullable(),
    revoked_at: timestamp('When the key was revoked; null if it was not.').nullable(),
    disabled: z.boolean().meta({ description: DISABLED_ABOUT, example: false }),
    providers: z
      .array(z.string())
      .nullable()
      .meta({ description: PROVIDERS_ABOUT, example: ['openai'] }),
    endpoints: z.enum(ENDPOINT_RULES).meta({ description: ENDPOINTS_ABOUT }),
    idempotency: z.enum(IDEMPOTENCY_MODES).meta({ description: IDEMPOTENCY_ABOUT }),
    websockets: z.boolean().meta({ description: WEBSOCKETS_ABOUT, example: false }),
    on_disconnect: z
      .enum(ON_DISCONNECT)
      .nullable()
      .meta({ description: KEY_ON_DISCONNECT_ABOUT, example: 'finish' }),
    cache: keyCacheSchema.nullable().meta({ description: CACHE_ABOUT }),
    ...modelRulesView,
    ...shownLimitMembers,
    ...annotationsView,
    self_service: z.boolean().meta({
      description:
        'Whether a member of the team, its `owner`, created the key for themselves: within `self_service` of the team.',
      example: false,
    }),
    owner_id: z
      .string()
      .nullable()
      .meta({
        description:
          'Of a key with `self_service`: the owner for good, whatever the name: `token:<ID>` or `sso:<issuer>#<sub>`; null for ' +
          'other keys, and those of earlier versions, which belong to the name.',
        example: 'sso:https://login.example.com#8f2c0a',
      }),
    origin: z.enum(KEY_ORIGINS).meta({
      description:
        '`manual`: somebody created the key; `sign_in`: a person did by their first sign-in from a client. Such a key has tokens only, and no secret.',
      example: 'manual',
    }),
    version: version(),
  })
  .meta({ id: 'Key' });
export type KeyView = z.output<typeof keySchema>;

export const keyPageSchema = pageOf('KeyPage', keySchema);

const SECRET_ABOUT = 'The secret. Shown only in this response: Postern stores its digest.';

/** A key with its secret, in the only response that contains it. */
export const issuedKeySchema = keySchema
  .extend({
    key: z
      .string()
      .nullable()
      .meta({ description: `${SECRET_ABOUT} Null for a key without a secret.`, example: 'ptn_…' }),
  })
  .meta({ id: 'IssuedKey' });
export type IssuedKeyView = z.output<typeof issuedKeySchema>;

/** `POST /admin/v1/keys/:id/rotate` */
export const rotatedKeySchema = keySchema
  .extend({
    key: z.string().meta({ description: SECRET_ABOUT, example: 'ptn_…' }),
    ended_secrets: z.array(z.string()).meta({
      description:
        'First characters of older secrets that were still in a grace and stopped working with this rotation.',
      example: ['ptn_4fGh7Kq2'],
    }),
  })
  .meta({ id: 'RotatedKey' });
export type RotatedKeyView = z.output<typeof rotatedKeySchema>;

const PROVIDERS = 'must be a list of one or more provider names; leave it out to allow all';

const providers = z
  .array(z.string(PROVIDERS).regex(PROVIDER_NAME, 'is not a provider name: a-z 0-9 - _ only'), PROVIDERS)
  .min(1, PROVIDERS)
  .max(100, 'must not name more than 100 providers')
  .transform((names) => [...new Set(names)]);

const expiry = time().refine(
  (at) => at.getTime() > Date.now(),
  'must be in the future; leave it out for a key that never expires',
);

/** `POST /admin/v1/keys` and `postern keys create` */
export const newKeySchema = z
  .strictObject({
    team: team().meta({ description: 'Name or ID of the team.', example: 'search' }),
    name: name().meta({ description: 'Name of the key, unique within the team.', example: 'ci' }),
    secret: flag().default(true).meta({
      description:
        'Whether the key gets a secret. Without one, only tokens that are issued for the key work: see trusts.',
    }),
    expires_at: expiry.nullish().default(null).meta({
      description: 'Expiry time, in the future; null or absent: the key never expires.',
      example: EXAMPLE_EXPIRY,
    }),
    providers: providers
      .nullish()
      .default(null)
      .meta({ description: PROVIDERS_ABOUT, example: ['openai'] }),
    endpoints: oneOf(ENDPOINT_RULES).default('inference').meta({ description: ENDPOINTS_ABOUT }),
    idempotency: oneOf(IDEMPOTENCY_MODES).default('forward').meta({ description: IDEMPOTENCY_ABOUT }),
    websockets: flag().default(false).meta({ description: WEBSOCKETS_ABOUT }),
    on_disconnect: oneOf(ON_DISCONNECT)
      .nullish()
      .default(null)
      .meta({ description: KEY_ON_DISCONNECT_ABOUT, example: 'finish' }),
    cache: newKeyCacheSchema.nullish().default(null).meta({ description: CACHE_ABOUT }),
    ...newModelRules,
    ...limitMembers,
    ...newAnnotations,
  })
  .meta({ id: 'NewKey', example: { team: 'search', name: 'ci', endpoints: 'inference' } });
export type NewKey = z.output<typeof newKeySchema>;

/** `PATCH /admin/v1/keys/:id`; the team cannot change, because the log's rows of a key belong to it. */
export const keyChangeSchema = z
  .strictObject({
    name: name().optional().meta({ description: 'New name, unique within the team.', example: 'ci' }),
    expires_at: expiry
      .nullable()
      .optional()
      .meta({
        description:
          'New expiry time, in the future; null: the key never expires. Of a key with a `latest_expiry` it is the new one, and ' +
          'must be a time; the present `expires_at` changes nothing.',
        example: EXAMPLE_EXPIRY,
      }),
    providers: providers
      .nullable()
      .optional()
      .meta({ description: PROVIDERS_ABOUT, example: ['openai'] }),
    endpoints: oneOf(ENDPOINT_RULES).optional().meta({ description: ENDPOINTS_ABOUT }),
    idempotency: oneOf(IDEMPOTENCY_MODES).optional().meta({ description: IDEMPOTENCY_ABOUT }),
    websockets: flag().optional().meta({ description: WEBSOCKETS_ABOUT }),
    on_disconnect: oneOf(ON_DISCONNECT)
      .nullable()
      .optional()
      .meta({ description: KEY_ON_DISCONNECT_ABOUT, example: 'finish' }),
    cache: newKeyCacheSchema.nullable().optional().meta({ description: CACHE_ABOUT }),
    ...modelRulesChange,
    disabled: flag().optional().meta({ description: DISABLED_ABOUT }),
    ...limitMembers,
    ...annotationsChange,
  })
  .meta({ id: 'KeyChange', example: { endpoints: 'all', expires_at: null } });
export type KeyChange = z.output<typeof keyChangeSchema>;

/** 30 days. For longer transitions, use a second key. */
const MAX_GRACE_S = 2_592_000;
const GRACE = `must be an integer from 0 to ${MAX_GRACE_S}; 0 ends the previous secret at once`;

/**
 * `POST /admin/v1/keys/:id/rotate`. By default the previous secret stops working at once, because after a leak nobody has time
 * to look up a parameter.
 */
export const rotationSchema = z
  .strictObject({
    grace_seconds: z.int(GRACE).min(0, GRACE).max(MAX_GRACE_S, GRACE).default(0).meta({
      description:
        'How long the previous secret keeps working, in seconds; 0 ends it at once. An older one stops working in any case.',
      example: 3600,
    }),
  })
  .meta({ id: 'Rotation', example: { grace_seconds: 3600 } });
export type Rotation = z.output<typeof rotationSchema>;

export const KEY_SORTS = ['created', 'name', 'expires', 'last_used'] as const;
export type KeySort = (typeof KEY_SORTS)[number];
const ORDERS = ['asc', 'desc'] as const;
const MAX_IDS = 100;
const IDS = `must be IDs of keys, at most ${MAX_IDS}, separated by commas`;
const SEARCH = 'must be a part of a name, or the first characters of a key; never send a whole key';
const PREFIX = `must be the first characters of a key, ${SHOWN_LENGTH} at most; never send a whole key`;

/** `GET /admin/v1/keys` and `postern keys list` */
export const keyFilterSchema = z.strictObject({
  team: team().optional().meta({ description: 'Only keys of this team, by name or ID.', example: 'search' }),
  name: searchText()
    .optional()
    .meta({ description: 'Only keys with this name; each team may have one.', example: 'ci' }),
  prefix: z
    .string(PREFIX)
    .regex(new RegExp(`^[0-9A-Za-z_]{1,${SHOWN_LENGTH}}$`), PREFIX)
    .optional()
    .meta({
      description: `Only keys with a secret that starts with these characters, at most ${SHOWN_LENGTH}. Never send a whole key.`,
      example: 'ptn_4fGh7Kq2',
    }),
  status: oneOf(KEY_STATUSES).optional().meta({ description: 'Only keys with this status.' }),
  search: searchText(SEARCH)
    .refine((text) => !/^pt[nrd]_[0-9A-Za-z_]{9}/.test(text) && !containsKeyFormat(text), SEARCH)
    .optional()
    .meta({
      description:
        'Only keys in whose name, team, owner or contact each of these words occurs, in any case; or the first characters of a key. ' +
        'Never send a whole key.',
      example: 'search/no',
    }),
  id: z
    .string(IDS)
    .transform((text) => text.split(','))
    .refine((ids) => ids.length <= MAX_IDS && ids.every(isUuid), IDS)
    .optional()
    .meta({
      description: `Only these keys, by ID, at most ${MAX_IDS}, separated by commas.`,
      example: EXAMPLE_ID,
    }),
  expires_before: time().optional().meta({
    description: 'Only keys that expire before this time, or have expired.',
    example: EXAMPLE_EXPIRY,
  }),
  unused_since: time().optional().meta({
    description: 'Only keys that were last used before this time, or created before and never used.',
    example: EXAMPLE_TIME,
  }),
  sort: oneOf(KEY_SORTS)
    .optional()
    .meta({
      description:
        'What to sort by. Default: `created`. `name` is that of the team, then of the key; `expires`: keys without an expiry come ' +
        'after those with one, expired and revoked keys last; `last_used`: keys that were never used come first.',
    }),
  order: oneOf(ORDERS).optional().meta({
    description: 'Ascending or descending. Default: `desc` for `created`, else `asc`.',
  }),
  ...annotationFilters('keys', ', of their own or of their team'),
  ...paging,
});
export type KeyFilter = z.output<typeof keyFilterSchema>;

/** Keys of a team by status. */
const keyCountsSchema = z
  .strictObject({
    team_id: shownId('the team'),
    active: z.int().meta({ description: 'Keys that work.', example: 12 }),
    disabled: z.int().meta({ description: 'Disabled keys; all keys of a disabled team are.', example: 0 }),
    expired: z.int().meta({ description: 'Keys that have expired.', example: 1 }),
    revoked: z.int().meta({ description: 'Revoked keys.', example: 3 }),
  })
  .meta({ id: 'KeyCounts' });
export type KeyCounts = z.output<typeof keyCountsSchema>;
export const keyCountsPageSchema = pageOf('KeyCountsPage', keyCountsSchema);

/** `GET /admin/v1/keys/allowance` */
export const allowanceFilterSchema = z.strictObject({
  team: team().meta({ description: 'Name or ID of the team.', example: 'search' }),
});
export type AllowanceFilter = z.output<typeof allowanceFilterSchema>;

export const allowanceSchema = z
  .strictObject({
    team: z.string().meta({ description: 'Name of the team.', example: 'search' }),
    keys: z.int().meta({ description: 'Keys of yours that count.', example: 1 }),
    keys_per_user: z.int().meta({ description: 'How many may count.', example: 3 }),
    counted_since: timestamp('Keys that ended since then count too; null: only those that work.').nullable(),
    max_days: z.int().meta({ description: 'Longest lifetime of a new key, in days.', example: 90 }),
    latest_expiry: timestamp('When a new key expires, unless you choose an earlier time.', EXAMPLE_EXPIRY),
    sign_in_within_days: z.int().nullable().meta({
      description:
        'A new key stops working so many days after you last signed in, and works again when you do; null: it needs no sign-in.',
      example: 14,
    }),
    budget_usd_per_month: z
      .string()
      .nullable()
      .meta({ description: 'Budget of a new key in USD per month; null for none.', example: '50' }),
    budget_resets_at: timestamp('When a month of the budget ends; null without one.').nullable(),
    providers: z
      .array(z.string())
      .nullable()
      .meta({ description: 'Providers and routes that a new key may use; null: all.', example: ['openai'] }),
  })
  .meta({ id: 'KeyAllowance' });
export type Allowance = z.output<typeof allowanceSchema>;

/** `GET /admin/v1/keys/counts` */
export const keyCountsFilterSchema = z.strictObject(paging);

/** `POST /admin/v1/keys/:id/revoke` */
export const revocationSchema = z.strictObject({}).meta({ id: 'Revocation', example: {} });

export const keyId = pathId('key');
