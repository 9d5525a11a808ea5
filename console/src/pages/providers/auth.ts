import type { Provider } from './provider';

export type Auth = Provider['auth'];
/** What some ways of authentication need besides the secret, as it was typed. */
export type Settings = Partial<Record<SettingName, string>>;
type SettingName = 'region' | 'service' | 'access_key_id' | 'token_url' | 'client_id' | 'scope';

export interface Field {
  name: SettingName;
  label: string;
  description?: string;
  placeholder?: string;
  required?: boolean;
}

interface Kind {
  label: string;
  /** Null: it takes none. */
  secret: string | null;
  fields: readonly Field[];
}

export const API_KEY = 'The provider’s API key.';
const SCOPE: Field = { name: 'scope', label: 'Scope' };

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
      { name: 'region', label: 'Region', placeholder: 'eu-central-1', required: true },
      { name: 'service', label: 'Service', description: 'Empty: bedrock.', placeholder: 'bedrock' },
      {
        name: 'access_key_id',
        label: 'Access key ID',
        description: 'Leave it empty if the secret has it.',
        placeholder: 'AKIA…',
      },
    ],
  },
  google: {
    label: 'Access tokens of a Google service account',
    secret: 'The content of the JSON key file.',
    fields: [{ ...SCOPE, description: 'Empty: the one of Google Cloud.' }],
  },
  oauth2: {
    label: 'Access tokens of an OAuth 2 client',
    secret: 'The client secret.',
    fields: [
      {
        name: 'token_url',
        label: 'Token URL',
        placeholder: 'https://login.example.com/oauth2/token',
        required: true,
      },
      { name: 'client_id', label: 'Client ID', required: true },
      SCOPE,
    ],
  },
};

export const AUTH_CHOICES = Object.entries(AUTHS).map(([value, { label }]) => ({ value, label }));

/** The settings of a way of authentication, without those of others. */
export function settingsOf(auth: Auth, from: Partial<Record<string, string>> | null): Settings {
  return Object.fromEntries(AUTHS[auth].fields.map(({ name }) => [name, from?.[name] ?? '']));
}

/** Those that were filled in, as the API takes them; undefined if there are none. */
export function filled(auth: Auth, settings: Settings): Settings | undefined {
  const entries = AUTHS[auth].fields.flatMap(({ name }) => (settings[name] ? [[name, settings[name]]] : []));
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as Settings);
}

/** What differs from the stored settings, as the API takes it: null removes one. Undefined if nothing differs. */
export function changed(
  auth: Auth,
  stored: Settings,
  settings: Settings,
): Record<string, string | null> | undefined {
  const entries = AUTHS[auth].fields
    .filter(({ name }) => (stored[name] ?? '') !== (settings[name] ?? ''))
    .map(({ name }) => [name, settings[name] || null]);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as Record<string, string | null>);
}
