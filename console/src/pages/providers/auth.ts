import type { Provider } from './provider';

export type Auth = Provider['auth'];
/** What some ways of authentication need besides the secret, or in its place, as it was typed. */
export type Settings = Partial<Record<SettingName, string>>;
type Stored = Omit<NonNullable<Provider['auth_settings']>, 'client_email'>;
type SettingName = keyof Stored;

export interface Field {
  name: SettingName;
  label: string;
  description?: string;
  placeholder?: string;
  required?: boolean;
}

/** What the form asks for. */
export interface Inputs {
  /** What the secret is; null: it takes none. */
  secret: string | null;
  fields: readonly Field[];
}

interface Kind extends Inputs {
  label: string;
  /** Ways without a stored secret, by the value of this setting. */
  keyless?: {
    setting: 'credentials' | 'source';
    /** The choice that stores a secret. */
    stored: string;
    ways: Readonly<Record<string, { label: string; fields: readonly Field[] }>>;
  };
}

export const API_KEY = 'The provider’s API key.';
const SCOPE: Field = { name: 'scope', label: 'Scope' };
const REGION: Field = { name: 'region', label: 'Region', placeholder: 'eu-central-1', required: true };
const SERVICE: Field = {
  name: 'service',
  label: 'Service',
  description: 'Empty: bedrock.',
  placeholder: 'bedrock',
};
const IDENTITY_TOKEN: Field = {
  name: 'identity_token',
  label: 'Identity token',
  description: 'Its name in IDENTITY_TOKEN_FILES.',
  required: true,
};
const SERVICE_ACCOUNT_ID: Field = { name: 'service_account_id', label: 'Service account ID', required: true };
const TOKEN_URL: Field = {
  name: 'token_url',
  label: 'Token URL',
  placeholder: 'https://login.example.com/oauth2/token',
  required: true,
};
const CLIENT_ID: Field = { name: 'client_id', label: 'Client ID', required: true };
const NEEDED_SCOPE: Field = {
  ...SCOPE,
  placeholder: 'https://cognitiveservices.azure.com/.default',
  required: true,
};

/** How a provider authenticates calls. */
export const AUTHS: Readonly<Record<Auth, Kind>> = {
  bearer: { label: 'Authorization: Bearer', secret: API_KEY, fields: [] },
  'x-api-key': { label: 'x-api-key', secret: API_KEY, fields: [] },
  'api-key': { label: 'api-key', secret: API_KEY, fields: [] },
  'x-goog-api-key': { label: 'x-goog-api-key', secret: API_KEY, fields: [] },
  client: { label: 'Callers send their own credential', secret: null, fields: [] },
  'aws-sigv4': {
    label: 'Signed requests (AWS)',
    secret: 'The secret access key, or what “aws configure export-credentials” prints.',
    fields: [
      REGION,
      SERVICE,
      {
        name: 'access_key_id',
        label: 'Access key ID',
        description: 'Leave it empty if the secret has it.',
        placeholder: 'AKIA…',
      },
    ],
    keyless: {
      setting: 'credentials',
      stored: 'Stored access key',
      ways: {
        'web-identity': {
          label: 'Role that an identity token may assume',
          fields: [
            REGION,
            SERVICE,
            IDENTITY_TOKEN,
            {
              name: 'role_arn',
              label: 'Role',
              placeholder: 'arn:aws:iam::111122223333:role/postern',
              required: true,
            },
          ],
        },
        container: { label: 'ECS or EKS Pod Identity', fields: [REGION, SERVICE] },
        instance: { label: 'Role of the virtual machine', fields: [REGION, SERVICE] },
      },
    },
  },
  google: {
    label: 'Access tokens of a Google service account',
    secret: 'The content of the JSON key file.',
    fields: [{ ...SCOPE, description: 'Empty: the one of Google Cloud.' }],
    keyless: {
      setting: 'source',
      stored: 'Stored key file',
      ways: {
        federation: {
          label: 'Exchange of an identity token',
          fields: [
            IDENTITY_TOKEN,
            {
              name: 'audience',
              label: 'Workload identity pool provider',
              placeholder:
                '//iam.googleapis.com/projects/…/locations/global/workloadIdentityPools/…/providers/…',
              required: true,
            },
            {
              name: 'service_account',
              label: 'Service account',
              description: 'To act as; empty: the identity itself.',
            },
            { ...SCOPE, description: 'Empty: the one of Google Cloud.' },
          ],
        },
        metadata: {
          label: 'Service account of the machine or pod',
          fields: [
            { name: 'service_account', label: 'Service account', description: 'Empty: the default one.' },
            { ...SCOPE, description: 'Empty: those of the machine.' },
          ],
        },
      },
    },
  },
  oauth2: {
    label: 'Access tokens of an OAuth 2 client',
    secret: 'The client secret.',
    fields: [TOKEN_URL, CLIENT_ID, SCOPE],
    keyless: {
      setting: 'source',
      stored: 'Stored client secret',
      ways: {
        federation: {
          label: 'Identity token as assertion (Entra ID)',
          fields: [IDENTITY_TOKEN, TOKEN_URL, CLIENT_ID, NEEDED_SCOPE],
        },
        metadata: {
          label: 'Managed identity of the machine (Azure)',
          fields: [
            {
              ...CLIENT_ID,
              description: 'Of a user-assigned identity; empty: that of the system.',
              required: false,
            },
            NEEDED_SCOPE,
          ],
        },
      },
    },
  },
  'openai-federation': {
    label: 'Exchange of an identity token (OpenAI)',
    secret: null,
    fields: [
      IDENTITY_TOKEN,
      { name: 'identity_provider_id', label: 'Identity provider ID', required: true },
      SERVICE_ACCOUNT_ID,
    ],
  },
  'anthropic-federation': {
    label: 'Exchange of an identity token (Anthropic)',
    secret: null,
    fields: [
      IDENTITY_TOKEN,
      { name: 'federation_rule_id', label: 'Federation rule ID', placeholder: 'fdrl_…', required: true },
      { name: 'organization_id', label: 'Organization ID', required: true },
      { ...SERVICE_ACCOUNT_ID, placeholder: 'svac_…' },
      {
        name: 'workspace_id',
        label: 'Workspace ID',
        description: 'Needed if the rule is for more than one.',
        placeholder: 'wrkspc_…',
      },
    ],
  },
};

export const AUTH_CHOICES = Object.entries(AUTHS).map(([value, { label }]) => ({ value, label }));

/** Where a credential can come from, as choices; empty if there is only one place. */
export function sourceChoices(auth: Auth): { value: string; label: string }[] {
  const { keyless } = AUTHS[auth];
  if (keyless === undefined) return [];
  const ways = Object.entries(keyless.ways).map(([value, { label }]) => ({ value, label }));
  return [{ value: '', label: keyless.stored }, ...ways];
}

/** The label of the choice; undefined if there is only one place. */
export function sourceLabel(
  auth: Auth,
  settings: Partial<Record<string, string>> | null,
): string | undefined {
  const { keyless } = AUTHS[auth];
  if (keyless === undefined) return undefined;
  return keyless.ways[settings?.[keyless.setting] ?? '']?.label ?? keyless.stored;
}

/** What the form asks for with these settings. */
export function inputsOf(auth: Auth, settings: Partial<Record<string, string>> | null): Inputs {
  const { keyless, secret, fields } = AUTHS[auth];
  const way = keyless?.ways[settings?.[keyless.setting] ?? ''];
  return way === undefined ? { secret, fields } : { secret: null, fields: way.fields };
}

/** The names that belong to a way of authentication with these settings. */
function namesOf(auth: Auth, settings: Settings): SettingName[] {
  const { keyless } = AUTHS[auth];
  const names = inputsOf(auth, settings).fields.map(({ name }) => name);
  return keyless === undefined ? names : [keyless.setting, ...names];
}

/** The settings of a way of authentication, without those of others. */
export function settingsOf(auth: Auth, from: Partial<Record<string, string>> | null): Settings {
  const { keyless, fields } = AUTHS[auth];
  const all = [...fields, ...Object.values(keyless?.ways ?? {}).flatMap((way) => way.fields)];
  const names = [...(keyless === undefined ? [] : [keyless.setting]), ...all.map(({ name }) => name)];
  return Object.fromEntries(names.map((name) => [name, from?.[name] ?? '']));
}

/** Those that were filled in, as the API takes them; undefined if there are none. */
export function filled(auth: Auth, settings: Settings): Stored | undefined {
  const entries = namesOf(auth, settings).flatMap((name) => (settings[name] ? [[name, settings[name]]] : []));
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as Stored);
}

/** What differs from the stored settings, as the API takes it: null removes one. Undefined if nothing differs. */
export function changed(
  auth: Auth,
  stored: Settings,
  settings: Settings,
): { [Name in SettingName]?: Stored[Name] | null } | undefined {
  const entries = namesOf(auth, settings)
    .filter((name) => (stored[name] ?? '') !== (settings[name] ?? ''))
    .map((name) => [name, settings[name] || null]);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
