import { ServiceError } from '../../errors/service-error.js';
import { type AuthSettings, isCloudAuth, type ProviderAuth } from './auth-kinds.js';
import { checkCredential, type SettingChanges } from './auth-settings.js';

const HEADER_SECRET = /^[\x21-\x7e]+$/;

/**
 * Checks a secret and the settings of its way of authentication.
 *
 * @param given undefined: the stored secret stays; null: there is none
 * @param changes the settings that were given, if others are stored
 * @returns the secret as it is encrypted; settings null for a secret that is sent as it is
 * @throws ServiceError invalid
 */
export function checkedCredential<T extends string | null | undefined>(
  auth: ProviderAuth,
  settings: AuthSettings,
  given: T,
  changes: SettingChanges = settings,
): { secret: T; authSettings: AuthSettings | null } {
  if (!isCloudAuth(auth)) {
    if (given != null && !HEADER_SECRET.test(given))
      throw ServiceError.of('invalid', 'secret', 'must be visible ASCII without spaces for this auth');
    return { secret: given, authSettings: null };
  }
  if (given === null) throw ServiceError.of('invalid', 'secret', `is needed for ${auth}`);
  const { settings: authSettings, secret } = checkCredential(auth, settings, given ?? null, changes);
  return { secret: (given === undefined ? undefined : secret) as T, authSettings };
}

/** The stored settings with these changes. */
export function changedSettings(stored: AuthSettings | null, changes: SettingChanges): AuthSettings {
  const all = Object.entries({ ...stored, ...changes });
  return Object.fromEntries(all.filter(([, value]) => value !== null));
}

/** @throws ServiceError invalid for a secret that would never be sent */
export function checkFits(auth: ProviderAuth, hasSecret: boolean): void {
  if (auth !== 'client' || !hasSecret) return;
  throw ServiceError.of(
    'invalid',
    'secret',
    'must be null with the auth "client", because callers send their own credential',
  );
}
