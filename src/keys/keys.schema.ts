import { z } from 'zod';
import { ENDPOINT_RULES, IDEMPOTENCY_MODES } from './gateway-key.entity.js';
import { SHOWN_LENGTH } from '../platform/api-key.js';
import { KEY_STATUSES } from './key-view.js';
import { PROVIDER_NAME } from '../providers/provider-name.js';
import { name, oneOf, paging, team, time } from '../admin/fields.schema.js';

const PROVIDERS = 'must be a list of one or more provider names; leave it out to allow all';

const providers = z
  .array(z.string(PROVIDERS).regex(PROVIDER_NAME, 'is not a provider name: a-z 0-9 - _ only'), PROVIDERS)
  .min(1, PROVIDERS)
  .max(100, 'must not name more than 100 providers')
  .transform((names) => [...new Set(names)]);

const expiry = time().refine(
  (at) => at.getTime() > Date.now(),
  'must be in the future; leave it out for no end',
);

/** `POST /admin/v1/keys` and `postern keys create` */
export const newKeySchema = z.strictObject({
  team: team(),
  name: name(),
  expires_at: expiry.nullish().default(null),
  providers: providers.nullish().default(null),
  endpoints: oneOf(ENDPOINT_RULES).default('inference'),
  idempotency: oneOf(IDEMPOTENCY_MODES).default('forward'),
});

/** `PATCH /admin/v1/keys/:id`; its team stays, for the log's rows of a key are its team's. */
export const keyChangeSchema = z.strictObject({
  name: name().optional(),
  expires_at: expiry.nullable().optional(),
  providers: providers.nullable().optional(),
  endpoints: oneOf(ENDPOINT_RULES).optional(),
  idempotency: oneOf(IDEMPOTENCY_MODES).optional(),
  disabled: z.boolean('must be true or false').optional(),
});

/** A month: what needs longer wants a second key. */
const LONGEST_GRACE_S = 2_592_000;
const GRACE = `must be an integer from 0 to ${LONGEST_GRACE_S}; 0 ends the older secrets at once`;

/**
 * `POST /admin/v1/keys/:id/rotate`. Without a grace the older secrets end at once: after a leak nobody has the time to
 * look up a parameter, and whoever rotates in peace has.
 */
export const rotationSchema = z.strictObject({
  grace_seconds: z.int(GRACE).min(0, GRACE).max(LONGEST_GRACE_S, GRACE).default(0),
});

const PREFIX = `must be the first characters of a key, ${SHOWN_LENGTH} at most; never send a whole key`;

/** `GET /admin/v1/keys` and `postern keys list` */
export const keyFilterSchema = z.strictObject({
  team: team().optional(),
  prefix: z
    .string(PREFIX)
    .regex(new RegExp(`^[0-9A-Za-z_]{1,${SHOWN_LENGTH}}$`), PREFIX)
    .optional(),
  status: oneOf(KEY_STATUSES).optional(),
  ...paging,
});

/** `POST /admin/v1/keys/:id/revoke` */
export const revocationSchema = z.strictObject({});
