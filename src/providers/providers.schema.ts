import { z } from 'zod';
import { PROVIDER_NAME } from './provider-name.js';
import { normaliseProviderUrl } from './provider-url.js';
import { PROVIDER_AUTHS } from './provider.js';
import { oneOf } from '../admin/fields.schema.js';

const NAME = 'must be 1 to 63 characters of a-z 0-9 - _ and begin with a letter or digit';
const SECRET =
  "must be the provider's secret as visible ASCII without spaces, 8,192 characters at most, or null when it takes none";

const url = z.string('must be a URL such as https://api.openai.com').transform((text, context): string => {
  const result = normaliseProviderUrl(text);
  if (result.url !== undefined) return result.url;
  context.addIssue({ code: 'custom', message: result.fault });
  return z.NEVER;
});

/** What can be sent in a header as it is (RFC 9110 5.5). */
const secret = z
  .string(SECRET)
  .regex(/^[\x21-\x7e]{1,8192}$/, SECRET)
  .nullable();

const flag = () => z.boolean('must be true or false');

/** `POST /admin/v1/providers` and `postern providers add`; `secret` must be given, so that none is forgotten. */
export const newProviderSchema = z.strictObject({
  name: z.string(NAME).regex(PROVIDER_NAME, NAME),
  url,
  auth: oneOf(PROVIDER_AUTHS).default('bearer'),
  secret,
  default: flag().default(false),
  enabled: flag().default(true),
});

/** `PATCH /admin/v1/providers/:name`; names stay, because keys refer to them. */
export const providerChangeSchema = z.strictObject({
  url: url.optional(),
  auth: oneOf(PROVIDER_AUTHS).optional(),
  secret: secret.optional(),
  default: flag().optional(),
  enabled: flag().optional(),
});

/** Where nothing can be given. */
export const nothingSchema = z.strictObject({});
