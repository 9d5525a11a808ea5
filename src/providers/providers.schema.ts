import { z } from 'zod';
import { EXAMPLE_ID, flag, oneOf, pageOf, timestamp } from '../admin/fields.schema.js';
import { PROVIDER_NAME } from './provider-name.js';
import { normaliseProviderUrl } from '../platform/provider-url.js';
import { PROVIDER_AUTHS } from './provider.js';

const AUTH_ABOUT = 'How the secret is sent to the provider.';
const DEFAULT_ABOUT = 'Calls to `/v1` go to the default provider.';
const SHOWN_DEFAULT_ABOUT = `${DEFAULT_ABOUT} At most one provider has true.`;
const ENABLED_ABOUT = 'Calls to a disabled provider are rejected.';
const CATALOG_ABOUT =
  'Name of the price list for its models; null if only custom prices for this provider apply.';

/** A provider as the API shows it, without its secret. */
export const providerSchema = z
  .strictObject({
    id: z.uuid().nullable().meta({
      description: 'ID of the provider; null for the one that PROVIDER_URL sets.',
      example: EXAMPLE_ID,
    }),
    name: z.string().meta({ description: 'Used in `/p/<name>/`.', example: 'openai' }),
    url: z.string().meta({ description: 'Base URL without `/v1`.', example: 'https://api.openai.com' }),
    auth: z.enum(PROVIDER_AUTHS).meta({ description: AUTH_ABOUT }),
    secret_state: z.enum(['sealed', 'none', 'unreadable', 'environment']).meta({
      description:
        'State of the secret, which is never shown. `sealed`: stored, encrypted; `unreadable`: it was encrypted with ' +
        'another master key; `environment`: set by PROVIDER_KEY.',
    }),
    default: z.boolean().meta({ description: SHOWN_DEFAULT_ABOUT }),
    shadowed_by: z
      .enum(['PROVIDER_URL'])
      .nullable()
      .meta({
        description:
          '`PROVIDER_URL`: this provider is stored as the default, but the one of PROVIDER_URL takes its place while that ' +
          'is set. Otherwise null.',
      }),
    enabled: z.boolean().meta({ description: ENABLED_ABOUT }),
    catalog: z.string().nullable().meta({ description: CATALOG_ABOUT, example: 'openai' }),
    source: z.enum(['stored', 'environment']).meta({
      description: '`environment`: set by PROVIDER_URL, and changed only there.',
    }),
    version: z.int().nullable().meta({
      description: 'Increases with every change; null for the provider that PROVIDER_URL sets.',
      example: 1,
    }),
    created_at: timestamp('When the provider was added.').nullable(),
    updated_at: timestamp('When the provider was last changed.').nullable(),
  })
  .meta({ id: 'Provider' });
export type ProviderView = z.output<typeof providerSchema>;
/** `unreadable`: encrypted with another master key, or damaged. */
export type SecretState = ProviderView['secret_state'];

export const providerPageSchema = pageOf('ProviderPage', providerSchema);

/** The result of a test request to a provider. */
export const probeSchema = z
  .strictObject({
    ok: z.boolean().meta({ description: 'True if the provider responded and accepted the secret.' }),
    code: z
      .enum([
        'ok',
        'name_not_resolved',
        'refused',
        'unreachable',
        'timeout',
        'tls',
        'forbidden_address',
        'not_http',
        'unauthorized',
        'not_found',
        'redirect',
        'rate_limited',
        'provider_error',
        'unexpected_status',
      ])
      .meta({ description: 'The result, for programs.' }),
    message: z.string().meta({
      description: 'The result in one sentence, with the remedy.',
      example: 'OK: the provider responded and accepted the secret.',
    }),
    status: z.int().nullable().meta({
      description: "HTTP status of the provider's response; null if there was none.",
      example: 200,
    }),
    duration_ms: z.number().meta({ description: 'Milliseconds that the test took.', example: 210.5 }),
  })
  .meta({ id: 'Probe' });
export type ProbeResult = z.output<typeof probeSchema>;

const NAME = 'must be 1 to 63 characters of a-z 0-9 - _ and start with a letter or digit';
const SECRET =
  "must be the provider's secret as visible ASCII without spaces, 8,192 characters at most, or null when it takes none";

const url = z.string('must be a URL such as https://api.openai.com').transform((text, context): string => {
  const result = normaliseProviderUrl(text);
  if (result.url !== undefined) return result.url;
  context.addIssue({ code: 'custom', message: result.problem });
  return z.NEVER;
});

const CATALOG = 'must be the name of a price list: 1 to 63 characters of a-z 0-9 - _, or null';

/** A price list has a name like a provider's: the names of the catalogue fit, and so does one of one's own. */
const catalog = z.string(CATALOG).regex(PROVIDER_NAME, CATALOG).nullable();

/** Text that a header can carry unchanged (RFC 9110 5.5). */
const secret = z
  .string(SECRET)
  .regex(/^[\x21-\x7e]{1,8192}$/, SECRET)
  .nullable();

const URL_ABOUT = 'Base URL without `/v1`, such as `https://api.openai.com`.';

/** `POST /admin/v1/providers` and `postern providers add`; `secret` is required, so that it is not forgotten. */
export const newProviderSchema = z
  .strictObject({
    name: z
      .string(NAME)
      .regex(PROVIDER_NAME, NAME)
      .meta({ description: 'Used in `/p/<name>/`.', example: 'openai' }),
    url: url.meta({ description: URL_ABOUT, example: 'https://api.openai.com' }),
    auth: oneOf(PROVIDER_AUTHS).default('bearer').meta({ description: AUTH_ABOUT }),
    secret: secret.meta({
      description: "The provider's API key; null if it needs none. Never shown again.",
      example: 'sk-…',
    }),
    default: flag().default(false).meta({ description: DEFAULT_ABOUT }),
    enabled: flag().default(true).meta({ description: ENABLED_ABOUT }),
    catalog: catalog.optional().meta({
      example: 'openai',
      description: `${CATALOG_ABOUT} Absent: the one that belongs to the URL's host, if there is one.`,
    }),
  })
  .meta({
    id: 'NewProvider',
    example: { name: 'openai', url: 'https://api.openai.com', secret: '<its API key>', default: true },
  });
export type NewProvider = z.output<typeof newProviderSchema>;

/** `PATCH /admin/v1/providers/:name`; names stay, because keys refer to them. */
export const providerChangeSchema = z
  .strictObject({
    url: url.optional().meta({
      description: `${URL_ABOUT} A URL on another host needs the secret again.`,
      example: 'https://api.openai.com',
    }),
    auth: oneOf(PROVIDER_AUTHS).optional().meta({ description: AUTH_ABOUT }),
    secret: secret
      .optional()
      .meta({ description: "The provider's new API key; null removes the stored one.", example: 'sk-…' }),
    default: flag().optional().meta({ description: DEFAULT_ABOUT }),
    enabled: flag().optional().meta({ description: ENABLED_ABOUT }),
    catalog: catalog.optional().meta({
      example: 'openai',
      description: `${CATALOG_ABOUT} Absent: it stays, or follows the URL if it belonged to the former URL's host.`,
    }),
  })
  .meta({ id: 'ProviderChange', example: { enabled: false } });
export type ProviderChange = z.output<typeof providerChangeSchema>;

export const providerName = z.string().meta({ description: 'Name of the provider.', example: 'openai' });
