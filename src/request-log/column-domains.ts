import { isIP } from 'node:net';
import { containsKeyFormat } from '../platform/api-key.js';
import { formatDecimal, parseDecimal } from '../platform/decimal.js';
import { MAX_SUMS } from '../bodies/usage/response-sums.js';

/** What no stored text may contain: the caller's key, or that and credentials of its own. */
export type CallerSecrets = string | readonly string[];

/**
 * Brings any value into a column's domain.
 *
 * @param key the caller's own key and credentials: text that contains one is not stored; null for a value read from the journal, which was
 * checked before it was written
 */
export type ToDomain<T> = (value: unknown, key: CallerSecrets | null) => T;

const MAX_TEXT_LENGTH = 1_024;

/** NUL and half of a surrogate pair, which may or may not have its other half. */
const DOUBTFUL = /[\0\ud800-\udfff]/;

/** For values that the gateway made itself. */
export function asIs<T>(value: unknown): T {
  return (value ?? null) as T;
}

/** Text without a gateway key, else null. */
export function text(value: unknown, key: CallerSecrets | null): string | null {
  const shown = typeof value === 'string' ? showable(value, key) : null;
  return shown === null ? null : storable(shown);
}

const TOKEN = /^[\w.:-]{1,64}$/;

/** A word of a program, without a gateway key, else null. */
export function token(value: unknown, key: CallerSecrets | null): string | null {
  return typeof value === 'string' && TOKEN.test(value) ? showable(value, key) : null;
}

/** Eight tags of 64 + 64 characters, and their punctuation. */
const MAX_TAGS_LENGTH = 2_048;

/** A JSON object of strings without a gateway key, else null: the tags of a call, which the gateway wrote as JSON. */
export function tagsJson(value: unknown, key: CallerSecrets | null): string | null {
  const json = typeof value === 'string' ? showable(value, key) : null;
  if (json === null || json.length > MAX_TAGS_LENGTH) return null;
  try {
    const tags = JSON.parse(json) as unknown;
    const isTags =
      typeof tags === 'object' &&
      tags !== null &&
      !Array.isArray(tags) &&
      // jsonb rejects what text rejects.
      Object.entries(tags).every((pair) =>
        pair.every((part) => typeof part === 'string' && !DOUBTFUL.test(part)),
      );
    return isTags ? json : null;
  } catch {
    return null;
  }
}

export function requiredText(value: unknown): string {
  return typeof value === 'string' ? storable(value) : '';
}

/** Null for text that contains a gateway key, the caller's or any other, or a credential of the caller. */
export function showable(value: string | null, key: CallerSecrets | null): string | null {
  if (value === null || (key !== null && containsAny(value, key)) || containsKeyFormat(value)) return null;
  return value;
}

function containsAny(value: string, secrets: CallerSecrets): boolean {
  return typeof secrets === 'string'
    ? value.includes(secrets)
    : secrets.some((secret) => value.includes(secret));
}

/**
 * Text that a Postgres `text` column accepts: no NUL, no lone surrogate, at most 1,024 characters. Copied by way of a
 * buffer, because a slice would keep the whole of a 64 KB header in memory for as long as the row waits.
 */
function storable(value: string): string {
  if (value.length <= MAX_TEXT_LENGTH && !DOUBTFUL.test(value)) return value;
  return Buffer.from(value.slice(0, MAX_TEXT_LENGTH)).toString().replaceAll('\0', '\ufffd');
}

/** Null for a number that an integer column would reject or that cannot be a count. */
export function integer(max: number): (value: unknown) => number | null {
  return (value) => {
    const isCount = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max;
    return isCount ? value : null;
  };
}

const BIGINTS = /^\{(?:\d{1,19}(?:,\d{1,19}){0,255})?\}$/;

/** A list of numbers as Postgres writes an array, else null. */
export function bigints(value: unknown): string | null {
  return typeof value === 'string' && BIGINTS.test(value) ? value : null;
}

const MEMBER = /^[a-z][a-z0-9_]{0,63}$/;
/** A service tier, a size such as `1024x1024`, a quality. */
const WORD = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const MAX_MEMBERS = 32;

/**
 * The JSON text of usage: an object of counts and words, of which `responses` may be a list of such objects; null
 * for anything else, and for an object without a member.
 *
 * @param value an object, or its JSON text as read from the journal
 */
export function usageJson(value: unknown, secrets: CallerSecrets | null): string | null {
  if (value === null || value === undefined) return null;
  let object: unknown = value;
  if (typeof value === 'string') {
    try {
      object = JSON.parse(value);
    } catch {
      return null;
    }
  }
  if (typeof object !== 'object' || object === null || Array.isArray(object)) return null;
  const { responses, ...members } = object as Record<string, unknown>;
  if (!isFlat(members)) return null;
  if (responses === undefined) return Object.keys(members).length === 0 ? null : JSON.stringify(members);
  const sums = sumsOf(responses, secrets);
  return sums === null ? null : JSON.stringify({ ...members, responses: sums });
}

/** Sums of responses; a model that contains a key is left out. Null if they are anything else. */
function sumsOf(value: unknown, secrets: CallerSecrets | null): object[] | null {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_SUMS) return null;
  const sums: object[] = [];
  for (const sum of value as unknown[]) {
    if (typeof sum !== 'object' || sum === null) return null;
    const { model, ...members } = sum as Record<string, unknown>;
    if (!isFlat(members)) return null;
    const name = text(model, secrets);
    sums.push(name === null ? members : { ...members, model: name });
  }
  return sums;
}

function isFlat(object: Record<string, unknown>): boolean {
  const members = Object.entries(object);
  return (
    members.length <= MAX_MEMBERS &&
    members.every(
      ([name, member]) =>
        MEMBER.test(name) &&
        (Number.isSafeInteger(member) || (typeof member === 'string' && WORD.test(member))),
    )
  );
}

/** Null for a number that cannot be a duration; whole microseconds, so that no value is too small for `real`. */
export function milliseconds(value: unknown): number | null {
  const isDuration = typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
  return isDuration ? Math.round(value * 1_000) / 1_000 : null;
}

/** Decimal places of an amount in USD, and the bound of `numeric(18,9)`. */
const USD_SCALE = 9;
const MAX_USD = 10n ** 18n;

/** An exact decimal in USD, rounded half up to nine places; null for anything else and for what the column cannot hold. */
export function dollars(value: unknown): string | null {
  const nano = typeof value === 'string' ? parseDecimal(value, USD_SCALE) : null;
  return nano === null || nano >= MAX_USD ? null : formatDecimal(nano, USD_SCALE);
}

/** The decimal of billionths of a dollar: at most nine million dollars, which a number holds exactly. Null for what is no count. */
export function dollarsOf(nano: unknown): string | null {
  if (typeof nano !== 'number' || !Number.isInteger(nano) || nano < 0) return null;
  const digits = String(Math.min(nano, Number.MAX_SAFE_INTEGER)).padStart(USD_SCALE + 1, '0');
  return `${digits.slice(0, -USD_SCALE)}.${digits.slice(-USD_SCALE)}`;
}

/** Null for anything but a plain IP address; a zone (`%eth0`) is not part of one. */
export function address(value: unknown): string | null {
  return typeof value === 'string' && isIP(value) !== 0 && !value.includes('%') ? value : null;
}

/** Epoch milliseconds inside a UUIDv7 (RFC 9562 5.7): its first 48 bits. */
export function startOf(id: string): number {
  return parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The start of a call as ISO 8601. */
export function startIso(id: string): string {
  return new Date(startOf(id)).toISOString();
}
