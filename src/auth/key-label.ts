import { readCredential } from './credential.js';
import { isWellFormedKey, shownPrefix } from '../keys/key-secret.js';

/** Where a key would be looked for. */
const CREDENTIAL_HEADER = /^(?:authorization|x-api-key|api-key|x-goog-api-key)$/i;

/**
 * How the log speaks of the key that a request carries: its shown prefix, `malformed` for anything that is not one key of
 * the right form, `none`. Whether the key is known is not asked.
 *
 * @param raw flat raw headers
 */
export function keyLabel(raw: readonly string[]): string {
  let key: string | null = null;
  try {
    key = readCredential(raw);
  } catch {
    return 'malformed';
  }
  if (key !== null && isWellFormedKey(key)) return shownPrefix(key);
  return raw.some((name, i) => i % 2 === 0 && CREDENTIAL_HEADER.test(name)) ? 'malformed' : 'none';
}
