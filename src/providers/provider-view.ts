import type { Settings } from '../config/settings.js';
import { catalogOf } from './provider-catalog.js';
import type { OnDisconnect } from './on-disconnect.js';
import { DEFAULT_PROVIDER } from './provider-name.js';
import type { AuthSettings, ProviderAuth } from './credentials/auth-kinds.js';
import type { ProviderView, SecretState } from './providers.schema.js';

export interface ProviderRow {
  id: string;
  name: string;
  url: string;
  auth: ProviderAuth;
  auth_settings: AuthSettings | null;
  sealed_secret: Buffer | null;
  is_default: boolean;
  enabled: boolean;
  catalog: string | null;
  on_disconnect: OnDisconnect;
  team_id: string | null;
  /** Its name. */
  team: string | null;
  version: number;
  created_at: Date;
  updated_at: Date;
}

export const SELECT_PROVIDERS = `
  SELECT id, name, url, auth, auth_settings, sealed_secret, is_default, enabled, catalog, on_disconnect, team_id,
         (SELECT t.name FROM team t WHERE t.id = team_id) AS team, version, created_at, updated_at
  FROM provider`;

/** Lists each field, so that a new column is not shown by accident. */
export function providerView(row: ProviderRow, secretState: SecretState): ProviderView {
  return {
    id: row.id,
    name: row.name,
    url: row.url,
    auth: row.auth,
    auth_settings: row.auth_settings && settingsView(row.auth_settings),
    secret_state: secretState,
    default: row.is_default,
    shadowed_by: null,
    enabled: row.enabled,
    catalog: row.catalog,
    on_disconnect: row.on_disconnect,
    team: row.team,
    source: 'stored',
    version: row.version,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

/** In this order: jsonb has one of its own. Lists each, as providerView() does. */
const SETTING_NAMES = [
  'credentials',
  'source',
  'region',
  'service',
  'access_key_id',
  'client_email',
  'identity_token',
  'role_arn',
  'audience',
  'service_account',
  'identity_provider_id',
  'federation_rule_id',
  'organization_id',
  'service_account_id',
  'workspace_id',
  'token_url',
  'client_id',
  'scope',
] as const satisfies readonly (keyof AuthSettings)[];

function settingsView(stored: AuthSettings): AuthSettings {
  const shown = SETTING_NAMES.map((name) => [name, stored[name]]).filter(([, value]) => value !== undefined);
  return Object.fromEntries(shown) as AuthSettings;
}

/** The provider of PROVIDER_URL, or null. */
export function environmentView(env: Settings): ProviderView | null {
  if (env.providerUrl === undefined) return null;
  return {
    id: null,
    name: DEFAULT_PROVIDER,
    url: env.providerUrl,
    auth: env.providerAuth,
    auth_settings: null,
    secret_state: env.providerKey === undefined ? 'none' : 'environment',
    default: true,
    shadowed_by: null,
    enabled: true,
    catalog: catalogOf(env.providerUrl),
    on_disconnect: 'cancel',
    team: null,
    source: 'environment',
    version: null,
    created_at: null,
    updated_at: null,
  };
}

/** The view of a stored provider beside the one of PROVIDER_URL, which is the default whatever is stored. */
export function besideEnvironment(env: Settings, stored: ProviderView): ProviderView {
  if (env.providerUrl === undefined || !stored.default) return stored;
  return { ...stored, default: false, shadowed_by: 'PROVIDER_URL' };
}
