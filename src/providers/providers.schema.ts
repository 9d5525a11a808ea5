import { z } from 'zod';
import { EXAMPLE_ID, flag, oneOf, pageOf, searchText, timestamp } from '../admin/fields.schema.js';
import { PROVIDER_NAME } from './provider-name.js';
import { normaliseProviderUrl } from '../platform/provider-url.js';
import { ON_DISCONNECT, ON_DISCONNECT_ABOUT } from './on-disconnect.js';
import { AWS_CREDENTIALS, isKeyless, PROVIDER_AUTHS, TOKEN_SOURCES } from './credentials/auth-kinds.js';

const AUTH_ABOUT =
  'How the secret is used: sent in the header of this name, or as a Bearer token; `aws-sigv4`: signs each request; `google`, ' +
  '`oauth2`: requests access tokens; `openai-federation`, `anthropic-federation`: exchanges an identity token of the ' +
  'gateway; ' +
  '`client`: callers send their own credential, which is forwarded, and the gateway key as `x-gateway-key`.';
const DEFAULT_ABOUT = 'Calls to `/v1` go to the default provider.';
const SHOWN_DEFAULT_ABOUT = `${DEFAULT_ABOUT} At most one provider has true.`;
const ENABLED_ABOUT = 'Calls to a disabled provider are rejected.';
const CATALOG_ABOUT =
  'Name of the price list for its models; null if only custom prices for this provider apply.';

const TEAM_ABOUT =
  'The only team whose keys may use it, and routes that send calls to it; null: all teams. A provider with a team is not ' +
  'the default of all teams.';
const ON_DISCONNECT_SHOWN = `${ON_DISCONNECT_ABOUT} Keys may say otherwise.`;

/** A setting of a way of authentication. @param form what it must be */
function setting(pattern: RegExp, form: string, description: string, example: string) {
  const remedy = `must be ${form}`;
  return z.string(remedy).regex(pattern, remedy).meta({ description, example });
}

const NAME_IN_HOST = /^[a-z0-9-]{1,63}$/;
/** Scopes contain visible ASCII without quotes and backslashes, and are separated by spaces (RFC 6749 3.3). */
const SCOPE = /^(?=.{1,1024}$)[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/;

const ID = /^[\w.-]{1,256}$/;
const FEDERATION = '`aws-sigv4` with `web-identity`; `google` and `oauth2` with `federation`';

const SETTINGS = {
  credentials: z.enum(AWS_CREDENTIALS, `must be one of ${AWS_CREDENTIALS.join(', ')}`).meta({
    description:
      '`aws-sigv4`: where temporary keys come from, in place of a secret: a role that an identity token may assume ' +
      '(`web-identity`), ECS or EKS Pod Identity (`container`), or the role of the virtual machine (`instance`).',
    example: 'web-identity',
  }),
  source: z.enum(TOKEN_SOURCES, `must be one of ${TOKEN_SOURCES.join(', ')}`).meta({
    description:
      '`google`, `oauth2`: where access tokens come from, in place of a secret: an identity token is exchanged ' +
      '(`federation`), or the metadata service of the virtual machine is asked (`metadata`).',
    example: 'metadata',
  }),
  identity_token: setting(
    PROVIDER_NAME,
    'a name in IDENTITY_TOKEN_FILES',
    `\`openai-federation\`, \`anthropic-federation\`; ${FEDERATION}: name of the identity token in IDENTITY_TOKEN_FILES.`,
    'openai',
  ),
  role_arn: setting(
    /^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/,
    'the ARN of an IAM role',
    '`aws-sigv4` with `web-identity`: the role to assume.',
    'arn:aws:iam::111122223333:role/postern',
  ),
  audience: setting(
    /^[\x21-\x7e]{1,1024}$/,
    'the full name of a provider in a workload identity pool',
    '`google` with `federation`: full name of the workload identity pool provider.',
    '//iam.googleapis.com/projects/123456789/locations/global/workloadIdentityPools/pool/providers/postern',
  ),
  service_account: setting(
    /^[\w.@-]{1,256}$/,
    'the e-mail address of a service account',
    '`google`: the service account to act as. With `metadata`, absent: the default one.',
    'postern@example.iam.gserviceaccount.com',
  ),
  identity_provider_id: setting(
    ID,
    'the ID of a workload identity provider',
    '`openai-federation`: ID of the workload identity provider.',
    'idp_0123456789',
  ),
  federation_rule_id: setting(
    ID,
    'the ID of a federation rule',
    '`anthropic-federation`: ID of the federation rule.',
    'fdrl_0123456789',
  ),
  organization_id: setting(
    ID,
    'the ID of the organization',
    '`anthropic-federation`: ID of the organization.',
    '00000000-0000-4000-8000-000000000000',
  ),
  service_account_id: setting(
    ID,
    'the ID of a service account',
    '`openai-federation`, `anthropic-federation`: ID of the service account.',
    'svac_0123456789',
  ),
  workspace_id: setting(
    ID,
    'the ID of a workspace',
    '`anthropic-federation`: ID of the workspace; needed if the rule is for more than one.',
    'wrkspc_0123456789',
  ),
  region: setting(NAME_IN_HOST, 'a region such as eu-central-1', '`aws-sigv4`: the region.', 'eu-central-1'),
  service: setting(
    NAME_IN_HOST,
    'a service name such as bedrock',
    '`aws-sigv4`: the service that the signature is for; by default `bedrock`.',
    'bedrock',
  ),
  access_key_id: setting(
    /^\w{16,128}$/,
    'an AWS access key ID',
    '`aws-sigv4`: the access key ID.',
    'AKIAIOSFODNN7EXAMPLE',
  ),
  token_url: setting(
    /^[\x21-\x7e]{1,2048}$/,
    'a URL such as https://login.example.com/oauth2/token',
    '`oauth2`: where tokens are requested. For `google`, the key file names it. Not with `metadata`.',
    'https://login.example.com/oauth2/token',
  ),
  client_id: setting(
    /^[\x20-\x7e]{1,1024}$/,
    'the ID of the client',
    '`oauth2`: the ID of the client. With `metadata`, that of a user-assigned managed identity.',
    'postern',
  ),
  scope: setting(
    SCOPE,
    'one or more scopes, separated by spaces',
    '`oauth2`, `google`: the scope of the tokens.',
    'https://cognitiveservices.azure.com/.default',
  ),
};

const shownSettingsSchema = z
  .strictObject({
    ...SETTINGS,
    client_email: z.string().meta({
      description: '`google`: the service account, from its key file.',
      example: 'postern@example.iam.gserviceaccount.com',
    }),
  })
  .partial()
  .meta({ id: 'ProviderAuthSettings' });

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
    auth_settings: shownSettingsSchema.nullable().meta({
      description: 'What `auth` needs besides the secret, or in its place; null if it needs nothing.',
    }),
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
    on_disconnect: z.enum(ON_DISCONNECT).meta({ description: ON_DISCONNECT_SHOWN }),
    team: z
      .string()
      .nullable()
      .meta({ description: `${TEAM_ABOUT} Its name.`, example: 'search' }),
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
        'credential_unavailable',
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
  "must be the provider's secret: visible ASCII without spaces, 8,192 characters at most, or the JSON of a cloud's credential; null if it takes none";
const SECRET_ABOUT =
  'For `aws-sigv4` the secret access key, or the JSON that `aws configure export-credentials` prints; for `google` the ' +
  'content of the JSON key file; for `oauth2` the client secret.';

const url = z.string('must be a URL such as https://api.openai.com').transform((text, context): string => {
  const result = normaliseProviderUrl(text);
  if (result.url !== undefined) return result.url;
  context.addIssue({ code: 'custom', message: result.problem });
  return z.NEVER;
});

const CATALOG = 'must be the name of a price list: 1 to 63 characters of a-z 0-9 - _, or null';

/** A price list has a name like a provider's: the names of the catalog fit, and so does one of one's own. */
const catalog = z.string(CATALOG).regex(PROVIDER_NAME, CATALOG).nullable();

/** Text that a header can carry unchanged (RFC 9110 5.5), or the JSON of a cloud's credential, which is checked with `auth`. */
const secret = z
  .string(SECRET)
  .regex(/^(?:[\x21-\x7e]{1,8192}|\s*\{[^]{1,16384})$/, SECRET)
  .nullable();

const team = searchText('must be the name or the id of a team, or null for all teams').nullable();

/** In a change, null removes a setting. */
const changedSettings = z.strictObject(
  Object.fromEntries(Object.entries(SETTINGS).map(([name, schema]) => [name, schema.nullable()])) as {
    [Name in keyof typeof SETTINGS]: z.ZodNullable<(typeof SETTINGS)[Name]>;
  },
);

const URL_ABOUT = 'Base URL without `/v1`, such as `https://api.openai.com`.';

/** A provider in a file of `postern apply`, and what a new one has; `secret` is required, so that it is not forgotten. */
export const newProviderSchema = z.strictObject({
  name: z
    .string(NAME)
    .regex(PROVIDER_NAME, NAME)
    .meta({ description: 'Used in `/p/<name>/`.', example: 'openai' }),
  url: url.meta({ description: URL_ABOUT, example: 'https://api.openai.com' }),
  auth: oneOf(PROVIDER_AUTHS).default('bearer').meta({ description: AUTH_ABOUT }),
  secret: secret.meta({
    description: `The provider's API key; null if it needs none. It may be absent only if \`auth\` and its settings take none. Never shown again. ${SECRET_ABOUT}`,
    example: 'sk-…',
  }),
  auth_settings: z.strictObject(SETTINGS).partial().optional().meta({
    id: 'NewProviderAuthSettings',
    description: 'What `auth` needs besides the secret, or in its place.',
  }),
  default: flag().default(false).meta({ description: DEFAULT_ABOUT }),
  enabled: flag().default(true).meta({ description: ENABLED_ABOUT }),
  catalog: catalog.optional().meta({
    example: 'openai',
    description: `${CATALOG_ABOUT} Absent: the one that belongs to the URL's host, if there is one.`,
  }),
  on_disconnect: oneOf(ON_DISCONNECT).default('cancel').meta({ description: ON_DISCONNECT_SHOWN }),
  team: team.default(null).meta({ description: `${TEAM_ABOUT} Its name or ID.`, example: 'search' }),
});

/** `POST /admin/v1/providers`: if there can be no secret, none is forgotten. */
export const postedProviderSchema = newProviderSchema
  .extend({ secret: newProviderSchema.shape.secret.optional() })
  .superRefine(({ auth, auth_settings: settings, secret: given }, context) => {
    if (given === undefined && auth !== 'client' && !isKeyless(auth, settings))
      context.addIssue({ code: 'custom', path: ['secret'], message: SECRET });
  })
  .meta({
    id: 'NewProvider',
    example: { name: 'openai', url: 'https://api.openai.com', secret: '<its API key>', default: true },
  });
export type NewProvider = z.output<typeof newProviderSchema>;
export type PostedProvider = z.output<typeof postedProviderSchema>;

/** `PATCH /admin/v1/providers/:name`; names stay, because keys refer to them. */
export const providerChangeSchema = z
  .strictObject({
    url: url.optional().meta({
      description: `${URL_ABOUT} A URL on another host needs the secret again.`,
      example: 'https://api.openai.com',
    }),
    auth: oneOf(PROVIDER_AUTHS).optional().meta({ description: AUTH_ABOUT }),
    secret: secret.optional().meta({
      description: `The provider's new API key; null removes the stored one. ${SECRET_ABOUT}`,
      example: 'sk-…',
    }),
    auth_settings: changedSettings.partial().optional().meta({
      id: 'ProviderAuthSettingsChange',
      description:
        'Settings to change; null removes one. `access_key_id`, `token_url` and `client_id` need the secret again.',
    }),
    default: flag().optional().meta({ description: DEFAULT_ABOUT }),
    enabled: flag().optional().meta({ description: ENABLED_ABOUT }),
    catalog: catalog.optional().meta({
      example: 'openai',
      description: `${CATALOG_ABOUT} Absent: it stays, or follows the URL if it belonged to the former URL's host.`,
    }),
    on_disconnect: oneOf(ON_DISCONNECT).optional().meta({ description: ON_DISCONNECT_SHOWN }),
    team: team.optional().meta({ description: `${TEAM_ABOUT} Its name or ID.`, example: 'search' }),
  })
  .meta({ id: 'ProviderChange', example: { enabled: false } });
export type ProviderChange = z.output<typeof providerChangeSchema>;

export const providerName = z.string().meta({ description: 'Name of the provider.', example: 'openai' });
