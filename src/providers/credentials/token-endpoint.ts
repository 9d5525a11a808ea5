/** The response of a token endpoint. */
export interface TokenResponse {
  readonly status: number;
  /** The body: at most 64 KiB. */
  readonly text: string;
  /** The time of its `Date` header in ms; null without one. */
  readonly date: number | null;
}

/** Sends requests to token endpoints, with the same rules for addresses as for providers. proxy/upstream implements it. */
export abstract class TokenEndpoint {
  /** @throws TokenError if there is no response */
  abstract post(url: string, form: URLSearchParams): Promise<TokenResponse>;
}

/** No access token could be obtained. The message is for administrators and contains no secret. */
export class TokenError extends Error {
  override readonly name = 'TokenError';
}

/** An access token as its endpoint issued it. */
export interface IssuedToken {
  readonly value: string;
  readonly lifeMs: number;
}

/** RFC 6749 5.1 only recommends `expires_in`. */
const LIFE_IF_UNKNOWN_MS = 300_000;
const MAX_LIFE_MS = 86_400_000;
/** A header can carry it. */
const TOKEN = /^[\x21-\x7e]{1,16384}$/;
const MAX_TEXT = 300;

/**
 * Reads a response (RFC 6749 5.1 and 5.2).
 *
 * @param secrets texts that the message of an error must not contain
 * @throws TokenError
 */
export function readToken({ status, text }: TokenResponse, secrets: readonly string[]): IssuedToken {
  const body = parse(text);
  if (status !== 200) {
    throw new TokenError(
      `the token endpoint responded with ${[`status ${status}`, ...reasons(body, secrets)].join(': ')}`,
    );
  }
  const { access_token: value, token_type: type, expires_in: seconds } = body;
  if (typeof value !== 'string' || !TOKEN.test(value))
    throw new TokenError('the token endpoint responded without a usable access_token');
  if (type !== undefined && (typeof type !== 'string' || type.toLowerCase() !== 'bearer'))
    throw new TokenError('the token endpoint issued a token that is not a Bearer token');
  // Some endpoints send the number as a string.
  const lifeMs = seconds === undefined ? LIFE_IF_UNKNOWN_MS : Number(seconds) * 1000;
  if (!(lifeMs > 0)) throw new TokenError('the token endpoint issued a token that has already expired');
  return { value, lifeMs: Math.min(lifeMs, MAX_LIFE_MS) };
}

function parse(text: string): Record<string, unknown> {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** True if a text contains a secret, also as it stood in the form or as a URL has it. */
function contains(text: string, secret: string): boolean {
  const inForm = new URLSearchParams({ '': secret }).toString().slice(1);
  return [secret, inForm, encodeURIComponent(secret)].some((form) => text.includes(form));
}

/** `error` and `error_description`, unless they contain a secret. */
function reasons(
  { error, error_description: description }: Record<string, unknown>,
  secrets: readonly string[],
) {
  return [error, description]
    .filter((part): part is string => typeof part === 'string' && part !== '')
    .filter((part) => !secrets.some((secret) => contains(part, secret)))
    .map((part) =>
      part
        .replace(/[^\x20-\x7e]+/g, ' ')
        .slice(0, MAX_TEXT)
        .trim(),
    );
}
