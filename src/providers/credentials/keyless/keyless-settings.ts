import { ServiceError } from '../../../errors/service-error.js';
import { type AuthSettings, AWS_CREDENTIALS, type CloudAuth, TOKEN_SOURCES } from '../auth-kinds.js';
import { type Cloud, providerOriginProblem, TOKEN_ORIGINS } from './cloud-hosts.js';

type Name = keyof AuthSettings;

/** Null removes a setting. */
export type SettingChanges = Partial<Record<Name, string | null>>;

/** What one way to use the identity of the workload needs. */
interface Mode {
  /** Only its own hosts get the credential. */
  readonly cloud: Cloud;
  readonly needed: readonly Name[];
  readonly optional: readonly Name[];
  readonly defaults?: AuthSettings;
}

const CLOUD_PLATFORM = 'https://www.googleapis.com/auth/cloud-platform';

/** By the way of authentication, and then by its `credentials` or `source`. */
const MODES: Record<CloudAuth, Readonly<Record<string, Mode>>> = {
  'openai-federation': {
    '': {
      cloud: 'openai',
      needed: ['identity_token', 'identity_provider_id', 'service_account_id'],
      optional: [],
    },
  },
  'anthropic-federation': {
    '': {
      cloud: 'anthropic',
      needed: ['identity_token', 'federation_rule_id', 'organization_id', 'service_account_id'],
      optional: ['workspace_id'],
    },
  },
  'aws-sigv4': {
    'web-identity': aws('identity_token', 'role_arn'),
    container: aws(),
    instance: aws(),
  },
  google: {
    federation: {
      cloud: 'google',
      needed: ['source', 'identity_token', 'audience'],
      optional: ['service_account', 'scope'],
      defaults: { scope: CLOUD_PLATFORM },
    },
    metadata: { cloud: 'google', needed: ['source'], optional: ['service_account', 'scope'] },
  },
  oauth2: {
    federation: {
      cloud: 'azure',
      needed: ['source', 'identity_token', 'token_url', 'client_id', 'scope'],
      optional: [],
    },
    metadata: { cloud: 'azure', needed: ['source', 'scope'], optional: ['client_id'] },
  },
};

function aws(...needed: Name[]): Mode {
  return {
    cloud: 'aws',
    needed: ['credentials', 'region', ...needed],
    optional: ['service'],
    defaults: { service: 'bedrock' },
  };
}

/** Names of the settings that this way of authentication has only without a stored secret. */
export function keylessSettingNames(auth: CloudAuth): Name[] {
  const modes = Object.values(MODES[auth]);
  return [...new Set(modes.flatMap(({ needed, optional }) => [...needed, ...optional]))];
}

/**
 * Checks the settings of a provider to which the identity of the workload gives access.
 *
 * @param settings as given, or as stored with the given changes; stored ones of another mode are left out
 * @param changes the settings that were given
 * @param origin scheme, host and port of the provider
 * @throws ServiceError invalid
 */
export function checkKeyless(
  auth: CloudAuth,
  settings: AuthSettings,
  changes: SettingChanges,
  origin: string,
): AuthSettings {
  const { cloud, needed, optional, defaults } = modeOf(auth, settings);
  const names = [...needed, ...optional];
  const other = (Object.keys(changes) as Name[]).find(
    (name) => changes[name] != null && !names.includes(name),
  );
  if (other !== undefined) throw invalid(other, `does not belong here; the settings are ${names.join(', ')}`);
  const own = Object.entries(settings).filter(([name]) => names.includes(name as Name));
  const checked: AuthSettings = { ...defaults, ...Object.fromEntries(own) };
  const missing = needed.find((name) => checked[name] === undefined);
  if (missing !== undefined) throw invalid(missing, `is needed; the settings are ${names.join(', ')}`);
  const problem = providerOriginProblem(cloud, origin);
  if (problem !== null) throw ServiceError.of('invalid', 'url', problem);
  const { token_url: url } = checked;
  if (url !== undefined && !(URL.canParse(url) && TOKEN_ORIGINS.entra.pattern.test(new URL(url).origin)))
    throw invalid(
      'token_url',
      `must be at ${TOKEN_ORIGINS.entra.form}, because an identity token is sent there`,
    );
  return checked;
}

function modeOf(auth: CloudAuth, { credentials, source }: AuthSettings): Mode {
  const mode = MODES[auth][credentials ?? source ?? ''];
  if (mode !== undefined) return mode;
  if (auth === 'aws-sigv4') throw invalid('credentials', `must be one of ${AWS_CREDENTIALS.join(', ')}`);
  throw invalid('source', `must be one of ${TOKEN_SOURCES.join(', ')}`);
}

function invalid(field: Name, message: string): ServiceError {
  return ServiceError.of('invalid', `auth_settings.${field}`, message);
}
