import type { MetadataCloud } from './keyless/metadata-services.js';

/** The response of a token endpoint. */
export interface TokenResponse {
  readonly status: number;
  /** The body: at most 64 KiB. */
  readonly text: string;
  /** The time of its `Date` header in ms; null without one. */
  readonly date: number | null;
}

export type RequestHeaders = Readonly<Record<string, string>>;

/**
 * Sends requests to token endpoints, with the same rules for addresses as for providers. Redirects are not followed.
 * proxy/upstream implements it.
 */
export abstract class TokenEndpoint {
  /**
   * @param body form parameters, or an object that is sent as JSON
   * @throws TokenError if there is no response
   */
  abstract post(
    url: string,
    body: URLSearchParams | Readonly<Record<string, unknown>>,
    headers?: RequestHeaders,
  ): Promise<TokenResponse>;

  /**
   * Asks a metadata service of the cloud that CLOUD_IDENTITY names, never through an egress proxy.
   *
   * @throws TokenError if there is no response, or CLOUD_IDENTITY does not allow this address
   */
  abstract metadata(
    cloud: MetadataCloud,
    url: string,
    headers: RequestHeaders,
    method?: 'GET' | 'PUT',
  ): Promise<TokenResponse>;
}

/** No access token could be obtained. The message is for administrators and contains no secret. */
export class TokenError extends Error {
  override readonly name = 'TokenError';
}

/** A credential as its endpoint issued it. */
export interface Issued<T> {
  readonly value: T;
  readonly lifeMs: number;
}

export type IssuedToken = Issued<string>;

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
export function readToken(response: TokenResponse, secrets: readonly string[]): IssuedToken {
  const body = readObject(response, secrets);
  const { access_token: value, token_type: type, expires_in: seconds } = body;
  if (type !== undefined && (typeof type !== 'string' || type.toLowerCase() !== 'bearer'))
    throw new TokenError('the token endpoint issued a token that is not a Bearer token');
  // Some endpoints send the number as a string.
  const lifeMs = seconds === undefined ? LIFE_IF_UNKNOWN_MS : Number(seconds) * 1000;
  return { value: usable(value, 'access_token'), lifeMs: checkedLife(lifeMs) };
}

/**
 * Reads the JSON object of a successful response.
 *
 * @returns an empty object if it is not one
 * @throws TokenError for any other status, with the reason of the endpoint unless it contains a secret
 */
export function readObject(
  { status, text }: TokenResponse,
  secrets: readonly string[],
): Record<string, unknown> {
  const body = parse(text);
  if (status !== 200) throw rejected(status, reasonsOf(body), secrets);
  return body;
}

/** @throws TokenError unless a header can carry the value */
export function usable(value: unknown, name: string): string {
  if (typeof value === 'string' && TOKEN.test(value)) return value;
  throw new TokenError(`the token endpoint responded without a usable ${name}`);
}

/** @param endsAt as RFC 3339 has it @throws TokenError if it has passed or is no time */
export function lifeUntil(endsAt: unknown, { date }: TokenResponse): number {
  // By the clock of the endpoint, if it says what it is.
  const lifeMs = Date.parse(typeof endsAt === 'string' ? endsAt : '') - (date ?? Date.now());
  if (Number.isNaN(lifeMs))
    throw new TokenError('the token endpoint responded without a usable end of its credential');
  return checkedLife(lifeMs);
}

/** @throws TokenError if it has ended */
function checkedLife(lifeMs: number): number {
  if (!(lifeMs > 0)) throw new TokenError('the token endpoint issued a token that has already expired');
  return Math.min(lifeMs, MAX_LIFE_MS);
}

/** @param reasons of the endpoint; those that contain a secret are left out */
export function rejected(
  status: number,
  reasons: readonly unknown[],
  secrets: readonly string[],
): TokenError {
  const shown = reasons
    .filter((part): part is string => typeof part === 'string' && part !== '')
    .filter((part) => !secrets.some((secret) => contains(part, secret)))
    .map((part) =>
      part
        .replace(/[^\x20-\x7e]+/g, ' ')
        .slice(0, MAX_TEXT)
        .trim(),
    );
  return new TokenError(`the token endpoint responded with ${[`status ${status}`, ...shown].join(': ')}`);
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

/** `error` and `error_description`; some endpoints have an object with a code and a message instead. */
function reasonsOf({ error, error_description: description, ...body }: Record<string, unknown>): unknown[] {
  if (typeof error === 'object' && error !== null) {
    const { status, code, type, message } = error as Record<string, unknown>;
    return [[status, code, type].find((one) => typeof one === 'string'), message];
  }
  return [error ?? body.code ?? body.Code, description ?? body.message ?? body.Message];
}
