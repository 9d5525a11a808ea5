import fc from 'fast-check';
import { endUserOf } from '../../src/bodies/end-user.js';
import { withBody } from '../../src/request-log/attribution.js';
import { check } from '../support/property.js';
import { readBody } from './read-body.js';

const read = (body: string) => endUserOf(readBody(Buffer.from(body)).json!);

const NAMES = ['safety_identifier', 'user', 'prompt_cache_key', 'metadata'] as const;

/** What JSON.parse says of a request: of members with the same name the last one counts. */
function expected(body: string): unknown {
  const parsed = JSON.parse(body) as Record<string, unknown>;
  const [identifier, user, session] = NAMES.map((name) => text(parsed[name]));
  const metadata = parsed.metadata as { user_id?: unknown } | null | undefined;
  const endUser = identifier ?? user ?? text(metadata?.user_id);
  return { endUser, sessionId: session };
}

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** Strings that look like members, once they are escaped or not. */
const content = fc.array(
  fc.constantFrom(
    '"user": "x"',
    '\\"user\\":',
    '"',
    '\\',
    '\\\\"',
    '"metadata"',
    'user',
    '{',
    '}',
    ':',
    'é😀',
    '\n',
  ),
  { maxLength: 40 },
);
const message = fc.record({
  role: fc.constantFrom('user', 'assistant'),
  content: fc.oneof(
    content.map((parts) => parts.join('')),
    content.map((parts) => [{ type: 'text', text: parts.join('') }]),
  ),
});
const member = fc.tuple(
  fc.constantFrom(...NAMES, 'model', 'input', 'User'),
  fc.oneof(
    fc.constantFrom<unknown>('', 'alice', 'bo"b', 7, null, ['user'], { user_id: 'carol' }, { user: 'x' }),
    fc.record({ user_id: fc.string(), user: fc.string() }, { requiredKeys: [] }),
  ),
);
const space = fc.constantFrom('', ' ', '\n', '\t  ', '\r\n');

/** A chat of up to 400 turns, with what names the end user before or after it. */
const chat = fc
  .record({
    messages: fc.array(message, { maxLength: 400, size: 'max' }),
    before: fc.array(member, { maxLength: 3 }),
    after: fc.array(member, { maxLength: 3 }),
    space,
  })
  .map(({ messages, before, after, space }) => {
    const all: [string, unknown][] = [...before, ['messages', messages], ...after];
    return `{${all.map(([name, value]) => `"${name}"${space}:${space}${JSON.stringify(value)}`).join(`${space},`)}}`;
  });

it('reads from the body of a chat, however long, what JSON.parse reads', () => {
  check(
    fc.property(chat, (body) => {
      expect(read(body)).toEqual(expected(body));
    }),
    { numRuns: 200 },
  );
});

it.each([63, 64, 65, 400])('finds a user who is named after %d user turns', (turns) => {
  const messages = Array.from({ length: turns }, () => ({
    role: 'user',
    content: 'said "user" '.repeat(20),
  }));
  expect(read(JSON.stringify({ messages, user: 'alice' })).endUser).toBe('alice');
});

const HASH = '70cc'.repeat(16);
const ACCOUNT = '0b6c1f1e-3f5a-4c7e-9a51-6f2f6d1c2b3a';
const SESSION = '9408d1f4-2f8e-4f4b-8f43-6a6f8f0e7c55';
const json = (members: object) => JSON.stringify(members);

describe("Claude Code's metadata.user_id", () => {
  it.each<[string, string, string, string | null]>([
    ['an account', json({ device_id: HASH, account_uuid: ACCOUNT, session_id: SESSION }), ACCOUNT, SESSION],
    ['a device', json({ device_id: HASH, account_uuid: '', session_id: SESSION }), HASH, SESSION],
    ['no session', json({ device_id: HASH }), HASH, null],
    [
      'the older form with an account',
      `user_${HASH}_account_${ACCOUNT}_session_${SESSION}`,
      ACCOUNT,
      SESSION,
    ],
    ['the older form with a device', `user_${HASH}_account__session_${SESSION}`, HASH, SESSION],
  ])('%s', (_, userId, endUser, sessionId) => {
    expect(read(JSON.stringify({ metadata: { user_id: userId } }))).toEqual({ endUser, sessionId });
  });

  it.each([
    json({ session_id: SESSION }),
    json({ account_uuid: 7, device_id: null }),
    '{"device_id":"a"',
    '["device_id"]',
    'user_x_account__session_y',
  ])('takes any other value as it is: %s', (userId) => {
    expect(read(JSON.stringify({ metadata: { user_id: userId } }))).toEqual({
      endUser: userId,
      sessionId: null,
    });
  });
});

it('counts only where the headers name nothing', () => {
  const named = { endUser: 'body', sessionId: 'b' };
  const tags = '{"a":"b"}';
  expect(withBody(null, named)).toEqual({ ...named, tags: null });
  expect(withBody({ endUser: null, sessionId: 'h', tags }, named)).toEqual({
    endUser: 'body',
    sessionId: 'h',
    tags,
  });
  expect(withBody(null, { endUser: null, sessionId: null })).toBeNull();
});
