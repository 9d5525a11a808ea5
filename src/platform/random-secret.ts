import { createHmac, getRandomValues } from 'node:crypto';
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
  const bytes = new Uint8Array(64);
  return secretFrom(prefix, () => getRandomValues(bytes));
}

/**
 * The secret that a key derives from a text: the same each time, and of no use to find the text or the key. It has as many
 * random bits as the key and the text have, at most 190.
 */
export function derivedSecret(prefix: string, key: Buffer, text: string): string {
  let block = 0;
  return secretFrom(prefix, () =>
    createHmac('sha512', key).update(`${block++}\0${prefix}\0${text}`).digest(),
  );
}

function secretFrom(prefix: string, next: () => Uint8Array): string {
  const length = prefix.length + RANDOM_LENGTH;
  let body = prefix;
  while (body.length < length) {
    for (const byte of next()) {
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
