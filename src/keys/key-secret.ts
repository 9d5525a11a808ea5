import { getRandomValues, hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { API_KEY_LENGTH, API_KEY_PREFIX, hasKeyFormat, SHOWN_LENGTH } from '../platform/api-key.js';

/**
 * A gateway key: `ptn_`, 32 random base62 characters (190 bits), 6 base62 characters of CRC-32 over what precedes.
 * The checksum is not secret; with it, typos and guesses are rejected without a query.
 */
const CHECKSUM_LENGTH = 6;
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Generates a key from the operating system's CSPRNG, without modulo bias. */
export function mintKey(): string {
  let body = API_KEY_PREFIX;
  const bytes = new Uint8Array(64);
  while (body.length < API_KEY_LENGTH - CHECKSUM_LENGTH) {
    for (const byte of getRandomValues(bytes)) {
      // 248 = 4 * 62: higher bytes would favour the first eight letters.
      if (byte < 248 && body.length < API_KEY_LENGTH - CHECKSUM_LENGTH) body += ALPHABET[byte % 62];
    }
  }
  return body + checksum(body);
}

/** True if the text has the key format and the right checksum; only such text is looked up. */
export function isWellFormedKey(text: string): boolean {
  return hasKeyFormat(text) && text.endsWith(checksum(text.slice(0, -CHECKSUM_LENGTH)));
}

/** SHA-256 of a key in hex: the form that is stored and looked up. A plain digest suffices for 190 random bits. */
export function digestKey(key: string): string {
  return hash('sha256', key, 'hex');
}

/** The first characters of a key, shown to identify it. */
export function shownPrefix(key: string): string {
  return key.slice(0, SHOWN_LENGTH);
}

function checksum(text: string): string {
  let rest = crc32(text);
  let out = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    out = ALPHABET[rest % 62]! + out;
    rest = Math.floor(rest / 62);
  }
  return out;
}
