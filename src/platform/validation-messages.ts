import type { z } from 'zod';

/** What a valid value is, by the type or the format that zod expects. */
const VALID: Record<string, string> = {
  string: 'text',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
  url: 'a URL, such as https://example.com/path',
  email: 'an email address',
  uuid: 'a UUID, such as 01890a5d-ac96-774b-bcce-b302099a8057',
  datetime: 'an ISO 8601 time in UTC, such as 2030-01-31T12:00:00Z',
  date: 'an ISO 8601 date, such as 2030-01-31',
};

/** What a bound of these counts; those of numbers bound the value itself. */
const UNITS: Record<string, string> = { string: 'character', array: 'item', set: 'item' };

/**
 * The message of a zod schema that has none of its own: it completes "<field>: …", names a valid value and never repeats
 * the invalid one, which may be a secret. Undefined: zod's own message.
 */
export function validationMessage(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return mustBe(issue.expected);
    case 'invalid_format':
      return issue.format === 'regex' ? `must match ${String(issue.pattern)}` : mustBe(issue.format);
    case 'invalid_value':
      return `must be ${issue.values.map(String).join(' or ')}`;
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'too_small':
      return bound(issue.origin, issue.inclusive ? 'at least' : 'more than', issue.minimum);
    case 'too_big':
      return bound(issue.origin, issue.inclusive ? 'at most' : 'less than', issue.maximum);
    case 'invalid_union':
    case 'invalid_key':
    case 'invalid_element':
    case 'unrecognized_keys':
    case 'custom':
      return undefined;
  }
}

function mustBe(name: string): string | undefined {
  return VALID[name] === undefined ? undefined : `must be ${VALID[name]}`;
}

function bound(origin: string, relation: string, limit: number | bigint): string | undefined {
  if (origin in UNITS)
    return `must have ${relation} ${limit} ${UNITS[origin]}${Number(limit) === 1 ? '' : 's'}`;
  return ['number', 'int', 'bigint'].includes(origin) ? `must be ${relation} ${limit}` : undefined;
}
