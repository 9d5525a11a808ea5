import { getRandomValues } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * Secrets with a checksum: a prefix, 32 random base62 characters (190 bits), 6 base62 characters of CRC-32 over what
 * precedes. The checksum is not secret; with it, typos and guesses are rejected without a query.
 */
const RANDOM_LENGTH = 32;
const CHECKSUM_LENGTH = 6;
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Generates a secret from the operating system's CSPRNG, without modulo bias. */
export function randomSecret(prefix: string): string {
  const length = prefix.length + RANDOM_LENGTH;
  let body = prefix;
  const bytes = new Uint8Array(64);
  while (body.length < length) {
    for (const byte of getRandomValues(bytes)) {
      // 248 = 4 * 62: higher bytes would favour the first eight letters.
      if (byte < 248 && body.length < length) body += ALPHABET[byte % 62];
    }
  }
  return body + checksum(body);
}

/** True if the text ends with the checksum of what precedes. */
export function hasChecksum(text: string): boolean {
  return text.endsWith(checksum(text.slice(0, -CHECKSUM_LENGTH)));
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
