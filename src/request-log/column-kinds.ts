import { integer, text, token } from './column-domains.js';

// What several columns have in common: phases, types and domains, and words about null.

const INT_MAX = 2_147_483_647;
export const BEGIN = ['begin'] as const;
export const END = ['end'] as const;
export const USAGE = ['usage'] as const;
/** Known before the call is forwarded if its body was read first, else later. */
export const BEGIN_OR_LATER = ['begin', 'usage'] as const;
/** Set when the end is recorded; the last moments of the call can still change it. */
export const END_OR_LATER = ['end', 'usage'] as const;

export const TOKENS = { type: 'int', phases: USAGE, toDomain: integer(INT_MAX) } as const;
export const BYTES = { type: 'bigint', phases: END, toDomain: integer(Number.MAX_SAFE_INTEGER) } as const;
export const SMALL = { type: 'smallint', toDomain: integer(32_767) } as const;
export const TEXT = { type: 'text', toDomain: text } as const;
export const TOKEN = { type: 'text', toDomain: token } as const;
export const NO_ERROR =
  'the provider reported none, or it is more than a word of at most 64 letters, digits and `_.:-`.';
export const NOT_REPORTED = 'the provider reported none, or the response could not be read.';
export const NOT_SENT = 'the client sent none or the text contained a gateway key.';
export const UNSEEN = 'the process died during the call.';
