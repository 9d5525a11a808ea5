import { z } from 'zod';
// Sets the messages for the process.
import '../../src/config/env-schema.js';

const schema = z.strictObject({
  text: z.string(),
  short: z.string().max(3),
  long: z.string().min(3),
  listed: z.array(z.string()).min(1),
  count: z.int().min(0),
  share: z.number().gt(0).lt(1),
  even: z.int().multipleOf(2),
  on: z.boolean(),
  site: z.url(),
  id: z.uuid(),
  at: z.iso.datetime(),
  code: z.string().regex(/^[a-z]+$/),
  kind: z.enum(['a', 'b']),
  only: z.literal('x'),
  own: z.string('must be a name'),
});

const SECRET = 'sk-secret';

it('a schema without messages of its own gets messages that name a valid value', () => {
  const { error } = schema.safeParse({
    short: 'abcd',
    long: 'a',
    listed: [],
    count: -1,
    share: 1,
    even: 3,
    on: SECRET,
    site: SECRET,
    id: SECRET,
    at: SECRET,
    code: SECRET,
    kind: SECRET,
    only: SECRET,
    own: 1,
  });
  expect(Object.fromEntries(error!.issues.map(({ path, message }) => [path.join('.'), message]))).toEqual({
    text: 'must be text',
    short: 'must have at most 3 characters',
    long: 'must have at least 3 characters',
    listed: 'must have at least 1 item',
    count: 'must be at least 0',
    share: 'must be less than 1',
    even: 'must be a multiple of 2',
    on: 'must be true or false',
    site: 'must be a URL, such as https://example.com/path',
    id: 'must be a UUID, such as 01890a5d-ac96-774b-bcce-b302099a8057',
    at: 'must be an ISO 8601 time in UTC, such as 2030-01-31T12:00:00Z',
    code: 'must match /^[a-z]+$/',
    kind: 'must be a or b',
    only: 'must be x',
    own: 'must be a name',
  });
});

it('an integer that is none, and numbers out of range', () => {
  const messageOf = (part: z.ZodType, value: unknown) => part.safeParse(value).error!.issues[0]!.message;
  expect(messageOf(z.int(), 1.5)).toBe('must be an integer');
  expect(messageOf(z.coerce.number(), 'abc')).toBe('must be a number');
  expect(messageOf(z.number().gt(0), 0)).toBe('must be more than 0');
  expect(messageOf(z.int(), 2 ** 53)).toBe('must be at most 9007199254740991');
});
