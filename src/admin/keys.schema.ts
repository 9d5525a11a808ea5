import { z } from 'zod';
import { ENDPOINT_RULES, IDEMPOTENCY_MODES } from '../keys/gateway-key.entity.js';
import { SHOWN_LENGTH } from '../keys/key-secret.js';
import { KEY_STATUSES } from '../keys/key-view.js';
import { PROVIDER_NAME } from '../providers/provider-name.js';
import { name, oneOf, paging, team, time } from './fields.schema.js';

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
