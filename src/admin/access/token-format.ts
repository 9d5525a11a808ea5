import { hash } from 'node:crypto';
import { hasChecksum, randomSecret } from '../../platform/random-secret.js';

const PREFIX = 'pta_';
const FORMAT = /^pta_[0-9A-Za-z]{38}$/;

/** How many leading characters are stored and shown to tell tokens apart. */
export const TOKEN_SHOWN_LENGTH = 12;

/** Generates a token of the admin API. */
export function generateToken(): string {
  return randomSecret(PREFIX);
}

/** True if the text has the format and the right checksum; only such text is looked up. */
export function isWellFormedToken(text: string): boolean {
  return FORMAT.test(text) && hasChecksum(text);
}

/** SHA-256 of a token in hex: the form that is stored and looked up. A plain digest suffices for 190 random bits. */
export function digestToken(token: string): string {
  return hash('sha256', token, 'hex');
}
