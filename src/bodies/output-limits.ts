import type { JsonMembers } from './json-members.js';

/** The members of a body. */
export type Members = Pick<JsonMembers, 'all'>;

/**
 * Members that limit the output, by the endpoints whose providers obey them. On any other endpoint the same member may be
 * ignored, so that it says nothing about how long the output gets.
 */
const LIMITS: readonly (readonly [endpoint: RegExp, names: readonly string[]])[] = [
  [/\/completions$/, ['max_tokens', 'max_completion_tokens']],
  [/\/responses$/, ['max_output_tokens']],
  [
    /\/(?:messages|invoke|invoke-with-response-stream|v[12]\/chat|v1\/generate)$|:\w*[rR]awPredict$/,
    ['max_tokens'],
  ],
];
/** Limits one level deeper: Gemini's, and Bedrock's. Both spellings are the same member for Gemini. */
const CONFIGS = ['generationConfig', 'generation_config'] as const;
const NESTED_LIMITS: readonly (readonly [RegExp, outer: readonly string[], inner: readonly string[]])[] = [
  [/:\w*[gG]enerateContent$/, CONFIGS, ['maxOutputTokens', 'max_output_tokens']],
  [/\/converse(?:-stream)?$/, ['inferenceConfig'], ['maxTokens']],
];
const CHOICES = ['n', 'best_of'];
const NESTED_CHOICES = ['candidateCount', 'candidate_count'];
/** The most that providers allow, for a member that is too long to be read. */
const MAX_CHOICES = 128;
const MAX_NESTED_CHOICES = 8;
/** Each element of its `prompt` has an output of its own, unless the elements are tokens. */
const WITH_PROMPTS = /(?<!\/chat)\/completions$/;

const OF_LIMITS = [...LIMITS.flatMap(([, names]) => names), ...NESTED_LIMITS.flatMap(([, outer]) => outer)];
const OF_CHOICES = [...CHOICES, ...CONFIGS, 'prompt'];

/** The most output tokens that a request asks for; null if it does not say or is ambiguous. */
export function maxOutputTokens(endpoint: string, members: Members): number | null {
  if (!hasAny(members, OF_LIMITS)) return null;
  const limits: unknown[] = [];
  for (const [endpoints, names] of LIMITS)
    if (endpoints.test(endpoint)) for (const name of names) limits.push(...valuesOf(members, name));
  for (const [endpoints, outer, inner] of NESTED_LIMITS)
    if (endpoints.test(endpoint)) limits.push(...nested(members, outer, inner));
  const known = limits.filter((limit) => limit !== null && limit !== undefined);
  // To some servers, 0 or -1 is no limit.
  if (known.length === 0 || !known.every((limit) => Number.isSafeInteger(limit) && Number(limit) > 0))
    return null;
  return Math.max(...(known as number[]));
}

/** The number of outputs that a request asks for. */
export function choices(endpoint: string, members: Members): number {
  if (!hasAny(members, OF_CHOICES)) return 1;
  const values: unknown[] = CHOICES.flatMap((name) => valuesOf(members, name)).map((value) =>
    value === undefined ? MAX_CHOICES : value,
  );
  const configured = nested(members, CONFIGS, NESTED_CHOICES);
  values.push(...configured.map((value) => (Number.isNaN(value) ? MAX_NESTED_CHOICES : value)));
  // Some providers read a number in quotes as a number.
  const numbers = values.map((value) => (typeof value === 'string' ? Number(value) : value));
  const each = Math.max(1, ...numbers.filter((value) => Number.isSafeInteger(value)).map(Number));
  return WITH_PROMPTS.test(endpoint) ? each * prompts(members) : each;
}

/** Most requests have none of them. */
function hasAny(members: Members, names: readonly string[]): boolean {
  for (const name of names) if (members.all(name).length > 0) return true;
  return false;
}

function prompts(members: Members): number {
  return Math.max(1, ...members.all('prompt').map(({ elements }) => elements));
}

function valuesOf(members: Members, name: string): unknown[] {
  return members.all(name).map(({ value }) => value);
}

function nested(members: Members, outer: readonly string[], inner: readonly string[]): unknown[] {
  return outer.flatMap((name) =>
    valuesOf(members, name).flatMap((value) =>
      // One that is too long to be read may say anything.
      value === undefined ? [NaN] : inner.map((key) => (value as Record<string, unknown> | null)?.[key]),
    ),
  );
}
