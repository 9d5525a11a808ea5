import { createPrivateKey } from 'node:crypto';
import { ServiceError } from '../../errors/service-error.js';
import { hostProblem } from '../../platform/provider-url.js';
import { type AuthSettings, type CloudAuth, isCloudAuth, isKeyless } from './auth-kinds.js';
import { checkKeyless, keylessSettingNames, type SettingChanges } from './keyless/keyless-settings.js';

/** A secret as it is encrypted, with the settings that belong to it. */
export interface CheckedCredential {
  settings: AuthSettings;
  /** Null: the stored one stays. */
  secret: string | null;
}

/** Of those that store a secret. */
interface Kind {
  /** The settings that an administrator may give. */
  readonly given: readonly (keyof AuthSettings)[];
  /** Those that belong to the secret: with another value, the secret must be sent again. */
  readonly bound: readonly (keyof AuthSettings)[];
  check(settings: AuthSettings, secret: string | null, changes: SettingChanges): CheckedCredential;
}

const KINDS: Partial<Record<CloudAuth, Kind>> = {
  'aws-sigv4': {
    given: ['region', 'service', 'access_key_id'],
    bound: ['access_key_id'],
    check(given, text, { access_key_id: named }) {
      const read = text === null ? null : awsSecret(text);
      const keyId = read?.accessKeyId ?? given.access_key_id;
      if (named != null && named !== keyId)
        throw invalid('access_key_id', 'differs from the AccessKeyId of the secret; leave it out');
      const settings = {
        region: needed(given, 'region', 'such as eu-central-1'),
        service: given.service ?? 'bedrock',
        access_key_id: needed({ access_key_id: keyId }, 'access_key_id', 'such as AKIAIOSFODNN7EXAMPLE'),
      };
      const secret =
        read && JSON.stringify({ secret_access_key: read.secretAccessKey, session_token: read.sessionToken });
      return { settings, secret };
    },
  },
  google: {
    given: ['scope'],
    bound: [],
    check({ scope = 'https://www.googleapis.com/auth/cloud-platform', ...stored }, text) {
      if (text === null) return { settings: { ...stored, scope }, secret: null };
      const file = keyFile(text);
      const settings = { client_email: file.client_email, token_url: file.token_uri, scope };
      return { settings, secret: JSON.stringify(file) };
    },
  },
  oauth2: {
    given: ['token_url', 'client_id', 'scope'],
    bound: ['token_url', 'client_id'],
    check(given, secret) {
      if (secret !== null && !CLIENT_SECRET.test(secret))
        throw invalid(
          'secret',
          'must be the client secret: visible ASCII without spaces, 4,096 characters at most',
        );
      const token_url = needed(given, 'token_url', 'such as https://login.example.com/oauth2/token');
      const problem = tokenUrlProblem(token_url);
      if (problem !== null) throw invalid('token_url', problem);
      const client_id = needed(given, 'client_id', 'the ID of the client at the token endpoint');
      return { settings: { token_url, client_id, ...(given.scope && { scope: given.scope }) }, secret };
    },
  },
};

/** Settings that come from a secret. */
const OF_SECRETS: readonly (keyof AuthSettings)[] = ['client_email', 'token_url', 'access_key_id'];

const CLIENT_SECRET = /^[\x21-\x7e]{1,4096}$/;
const AWS_SECRET = /^[\x21-\x7e]{16,128}$/;
const AWS_TOKEN = /^[\x21-\x7e]{1,8192}$/;
const AWS_KEY_ID = /^\w{16,128}$/;
const EMAIL = /^[\x21-\x7e]{1,256}$/;
const DEFAULT_TOKEN_URL = 'https://oauth2.googleapis.com/token';

/**
 * Checks settings and secret together. Temporary credentials of AWS replace the stored access key ID by their own.
 *
 * @param origin scheme, host and port of the provider
 * @param settings as given, or as stored with the given changes
 * @param secret null: the stored one stays
 * @param changes the settings that were given
 * @throws ServiceError invalid; it names the field and does not repeat the secret
 */
export function checkCredential(
  auth: CloudAuth,
  origin: string,
  settings: AuthSettings,
  secret: string | null,
  changes: SettingChanges,
): CheckedCredential {
  const kind = KINDS[auth];
  if (kind === undefined || isKeyless(auth, settings))
    return { settings: checkKeyless(auth, settings, changes, origin), secret: null };
  const names = [...kind.given, ...OF_SECRETS];
  const other = (Object.keys(changes) as (keyof AuthSettings)[]).find(
    (name) => changes[name] != null && !names.includes(name),
  );
  if (other !== undefined) {
    const remedy = auth === 'aws-sigv4' ? 'credentials' : 'source';
    throw invalid(other, `is for providers without a secret; give ${remedy} as well`);
  }
  // What was stored for a provider without a secret ends with it.
  const own = Object.entries(settings).filter(([name]) => names.includes(name as keyof AuthSettings));
  return kind.check(Object.fromEntries(own), secret, changes);
}

/** Names of the settings that an administrator may give for this way of authentication. */
export function settingNames(auth: string): readonly string[] {
  if (!isCloudAuth(auth)) return [];
  return [...new Set([...(KINDS[auth]?.given ?? []), ...keylessSettingNames(auth)])];
}

/** @throws ServiceError invalid for a setting that this way of authentication does not have */
export function rejectOtherSettings(auth: string, given: object): void {
  const known = settingNames(auth);
  const other = Object.keys(given).find((name) => !known.includes(name));
  if (other === undefined) return;
  const remedy = known.length === 0 ? 'has no settings' : `has only ${known.join(', ')}`;
  throw ServiceError.of('invalid', 'auth_settings', `${other} does not belong to ${auth}, which ${remedy}`);
}

/** True if the stored secret belongs to other settings, or to another way of authentication. */
export function needsSecretAgain(
  before: { auth: string; auth_settings: AuthSettings | null },
  after: { auth: string; auth_settings: AuthSettings | null },
): boolean {
  if (before.auth !== after.auth) return isCloudAuth(before.auth) || isCloudAuth(after.auth);
  if (!isCloudAuth(after.auth)) return false;
  return (KINDS[after.auth]?.bound ?? []).some(
    (name) => before.auth_settings?.[name] !== after.auth_settings?.[name],
  );
}

/** The secret access key alone, or the JSON that `aws configure export-credentials` prints. */
function awsSecret(text: string) {
  const json = objectOf(text);
  const accessKeyId = json?.AccessKeyId;
  const secretAccessKey = json === null ? text.trim() : json.SecretAccessKey;
  const sessionToken = json?.SessionToken ?? null;
  if (typeof secretAccessKey !== 'string' || !AWS_SECRET.test(secretAccessKey)) {
    throw invalid(
      'secret',
      'must be an AWS secret access key, or the JSON that "aws configure export-credentials" prints',
    );
  }
  if (sessionToken !== null && (typeof sessionToken !== 'string' || !AWS_TOKEN.test(sessionToken)))
    throw invalid('secret', 'has a SessionToken that is not visible ASCII');
  if (accessKeyId !== undefined && (typeof accessKeyId !== 'string' || !AWS_KEY_ID.test(accessKeyId)))
    throw invalid('secret', 'has an AccessKeyId that is not one');
  return { accessKeyId, secretAccessKey, sessionToken };
}

/** The members of a service account's key file that are needed. */
function keyFile(text: string) {
  const file = objectOf(text);
  const wrong = (what: string) =>
    invalid('secret', `must be the JSON key file of a Google service account; ${what}`);
  if (file === null) throw wrong('it is not a JSON object');
  const { type, client_email, private_key, private_key_id = null, token_uri = DEFAULT_TOKEN_URL } = file;
  if (type !== 'service_account') throw wrong('its "type" is not "service_account"');
  if (typeof client_email !== 'string' || !EMAIL.test(client_email))
    throw wrong('its "client_email" is missing');
  if (typeof private_key !== 'string' || !isRsaKey(private_key))
    throw wrong('its "private_key" is missing or cannot be read');
  if (private_key_id !== null && typeof private_key_id !== 'string')
    throw wrong('its "private_key_id" is not a string');
  if (typeof token_uri !== 'string') throw wrong('its "token_uri" is not a string');
  const problem = tokenUrlProblem(token_uri);
  if (problem !== null) throw wrong(`its "token_uri" ${problem}`);
  return { client_email, private_key, private_key_id, token_uri };
}

/** PKCS #8 in PEM, as key files have it. */
function isRsaKey(pem: string): boolean {
  if (!pem.startsWith('-----BEGIN PRIVATE KEY-----')) return false;
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa';
  } catch {
    return false;
  }
}

/** The same rules as for provider URLs; a query is allowed. */
function tokenUrlProblem(value: string): string | null {
  if (!/^https?:\/\/[\x21-\x7e]+$/.test(value) || value.includes('\\') || !URL.canParse(value))
    return 'must be a well-formed URL that starts with https:// (or http:// for a local endpoint)';
  const url = new URL(value);
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or password';
  if (value.includes('#')) return 'must not contain a fragment';
  return hostProblem(url);
}

function objectOf(text: string): Record<string, unknown> | null {
  if (!text.trimStart().startsWith('{')) return null;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}

function needed(settings: AuthSettings, name: keyof AuthSettings, example: string): string {
  const value = settings[name];
  if (value !== undefined) return value;
  throw invalid(name, `is needed for this auth, ${example}`);
}

function invalid(field: string, message: string): ServiceError {
  const path = field === 'secret' ? field : `auth_settings.${field}`;
  return ServiceError.of('invalid', path, message);
}
