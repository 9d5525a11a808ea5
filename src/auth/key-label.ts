import { readCredential } from './credential.js';
import { isWellFormedKey, shownPrefix } from '../keys/key-secret.js';

/** Headers that may carry a key. */
const CREDENTIAL_HEADER = /^(?:authorization|x-api-key|api-key|x-goog-api-key)$/i;

/**
 * Describes the key of a request for the log: its prefix, `malformed` if it is not a single well-formed key, or `none`.
 * It does not check whether the key exists.
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
