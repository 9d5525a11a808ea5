import { hash } from 'node:crypto';
import {
  API_KEY_PREFIX,
  hasKeyFormat,
  hasSecretFormat,
  REFRESH_TOKEN_PREFIX,
  SHOWN_LENGTH,
} from '../platform/api-key.js';
import { hasChecksum, randomSecret } from '../platform/random-secret.js';

/** Generates a gateway key. */
export function generateKey(): string {
  return randomSecret(API_KEY_PREFIX);
}

/** True if the text has the key format and the right checksum; only such text is looked up. */
export function isWellFormedKey(text: string): boolean {
  return hasKeyFormat(text) && hasChecksum(text);
}

/** The same for refresh tokens, which open no call. */
export function isWellFormedRefreshToken(text: string): boolean {
  return hasSecretFormat(text, REFRESH_TOKEN_PREFIX) && hasChecksum(text);
}

/** SHA-256 of a key in hex: the form that is stored and looked up. A plain digest suffices for 190 random bits. */
export function digestKey(key: string): string {
  return hash('sha256', key, 'hex');
}

/** The first characters of a key, shown to identify it. */
export function shownPrefix(key: string): string {
  return key.slice(0, SHOWN_LENGTH);
}
