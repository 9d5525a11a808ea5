import { ServiceError } from '../../errors/service-error.js';
import { type AuthSettings, isCloudAuth, isKeyless, type ProviderAuth } from './auth-kinds.js';
import { checkCredential } from './auth-settings.js';
import type { SettingChanges } from './keyless/keyless-settings.js';

const HEADER_SECRET = /^[\x21-\x7e]+$/;

/**
 * Checks a secret and the settings of its way of authentication.
 *
 * @param url of the provider
 * @param given undefined: the stored secret stays; null: there is none
 * @param changes the settings that were given, if others are stored
 * @returns the secret as it is encrypted; settings null for a secret that is sent as it is
 * @throws ServiceError invalid
 */
export function checkedCredential<T extends string | null | undefined>(
  auth: ProviderAuth,
  url: string,
  settings: AuthSettings,
  given: T,
  changes: SettingChanges = settings,
): { secret: T; authSettings: AuthSettings | null } {
  if (!isCloudAuth(auth)) {
    if (given != null && !HEADER_SECRET.test(given))
      throw ServiceError.of('invalid', 'secret', 'must be visible ASCII without spaces for this auth');
    return { secret: given, authSettings: null };
  }
  const takesNone = isKeyless(auth, settings);
  if (given === null && !takesNone) throw ServiceError.of('invalid', 'secret', `is needed for ${auth}`);
  if (given != null && takesNone) throw withoutSecret(auth);
  const origin = new URL(url).origin;
  const { settings: authSettings, secret } = checkCredential(auth, origin, settings, given ?? null, changes);
  return { secret: (given === undefined ? undefined : secret) as T, authSettings };
}

/** The stored settings with these changes. */
export function changedSettings(stored: AuthSettings | null, changes: SettingChanges): AuthSettings {
  const all = Object.entries({ ...stored, ...changes });
  return Object.fromEntries(all.filter(([, value]) => value !== null));
}

/** @throws ServiceError invalid for a secret that would never be sent */
export function checkFits(
  { auth, auth_settings: settings }: { auth: ProviderAuth; auth_settings: AuthSettings | null },
  hasSecret: boolean,
): void {
  if (!hasSecret) return;
  if (auth === 'client') {
    throw ServiceError.of(
      'invalid',
      'secret',
      'must be null with the auth "client", because callers send their own credential',
    );
  }
  if (isKeyless(auth, settings)) throw withoutSecret(auth);
}

function withoutSecret(auth: ProviderAuth): ServiceError {
  return ServiceError.of(
    'invalid',
    'secret',
    `must be null with these settings of ${auth}, because the identity of the gateway takes its place`,
  );
}
