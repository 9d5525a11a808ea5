/**
 * The format of a gateway key: `ptn_`, 32 random base62 characters, 6 base62 characters of checksum. Defined only
 * here, so that key generation, request checks and the request log agree on what a key looks like.
 */
export const API_KEY_PREFIX = 'ptn_';
/** Of refresh tokens and device codes, which have the same form and open no call. */
export const REFRESH_TOKEN_PREFIX = 'ptr_';
export const DEVICE_CODE_PREFIX = 'ptd_';
export const API_KEY_LENGTH = 42;

/** How many leading characters are stored and shown to tell keys apart. */
export const SHOWN_LENGTH = 12;

const REST = `[0-9A-Za-z]{${API_KEY_LENGTH - API_KEY_PREFIX.length}}`;
const WHOLE = new RegExp(`^${API_KEY_PREFIX}${REST}$`);
const SECRET = new RegExp(`^pt[nrd]_${REST}$`);
const ANYWHERE = new RegExp(`pt[nrd]_${REST}`);
const SHOWN_PREFIX = new RegExp(`^${API_KEY_PREFIX}[0-9A-Za-z]{${SHOWN_LENGTH - API_KEY_PREFIX.length}}$`);

/** True if the text has the form of a gateway key. The checksum is not verified. */
export function hasKeyFormat(text: string): boolean {
  return WHOLE.test(text);
}

/** True if the text has the form of a secret with this prefix. The checksum is not verified. */
export function hasSecretFormat(text: string, prefix: string): boolean {
  return text.length === API_KEY_LENGTH && text.startsWith(prefix) && SECRET.test(text);
}

/**
 * True if a gateway key, a refresh token or a device code, whether or not its checksum is right, occurs anywhere in the text.
 */
export function containsKeyFormat(text: string): boolean {
  return text.includes('_') && ANYWHERE.test(text);
}

/** True for the leading characters of a key, as `prefix` shows them. */
export function isShownPrefix(text: string): boolean {
  return SHOWN_PREFIX.test(text);
}
