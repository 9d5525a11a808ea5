import { RejectedToken, readIdentityToken } from '../../src/identity/trusts/identity-token.js';

const part = (text: string) => Buffer.from(text).toString('base64url');
const HEADER = part('{"alg":"RS256","kid":"one"}');

/** What reading a token costs: the characters that were parsed, and the objects that were looked into. */
function workOf(text: string): { reason: string; parsed: number; visited: number } {
  let parsed = 0;
  let visited = 0;
  const { parse } = JSON;
  const { values } = Object;
  jest.spyOn(JSON, 'parse').mockImplementation((json: string): unknown => {
    parsed += json.length;
    return parse(json);
  });
  jest.spyOn(Object, 'values').mockImplementation(((object: object): unknown[] => {
    visited++;
    return values(object);
  }) as typeof Object.values);
  try {
    readIdentityToken(text);
    return { reason: 'none', parsed, visited };
  } catch (error) {
    if (!(error instanceof RejectedToken)) throw error;
    return { reason: error.detail, parsed, visited };
  } finally {
    jest.restoreAllMocks();
  }
}

it('a token beyond the bounds is rejected before anything of it is parsed', () => {
  for (const length of [17_000, 1_000_000, 30_000_000]) {
    const { reason, parsed, visited } = workOf(`${HEADER}.${'A'.repeat(length)}.AA`);
    expect(reason).toBe('longer than 16384 characters');
    expect([parsed, visited]).toEqual([0, 0]);
  }
});

it.each([
  ['members twice', `{${'"a":1,'.repeat(1_900)}"a":2}`, 'a member twice'],
  [
    'many claims',
    JSON.stringify(Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`c${i}`, 1]))),
    'too many members',
  ],
  [
    'many claims in claims',
    JSON.stringify(
      Array.from({ length: 20 }, () => [1, [2, [3]]]).reduce(
        (all, one, i) => ({ ...all, [i]: Array(40).fill(one) }),
        {},
      ),
    ),
    'too many members',
  ],
  ['deep claims', `{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`, 'too many members'],
])('a token with %s is rejected once it has been parsed, after a bounded part of it', (_, payload, why) => {
  const { reason, parsed, visited } = workOf(`${HEADER}.${part(payload)}.AA`);
  expect(reason).toContain(why);
  // Its header and its payload, once each.
  expect(parsed).toBeLessThanOrEqual(16_384);
  // As many objects as a token may have members.
  expect(visited).toBeLessThanOrEqual(502);
});
