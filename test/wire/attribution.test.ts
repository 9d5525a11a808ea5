import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { never } from '../support/never.js';
import { request } from '../support/raw-client.js';
import { chunk, LAST_CHUNK } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

const CHAT = 'POST /v1/chat/completions';

interface Attributed {
  end_user: string | null;
  session_id: string | null;
  tags: Record<string, string> | null;
}

/** Sends a call, checks that the body passed unchanged and no header of ours did. @returns what its row says */
async function attributed(wire: Wire, headers: string[], body: string): Promise<Attributed> {
  const reply = await wire.call(CHAT, headers, body);
  expect(reply.status).toBe(200);
  expect(reply.body.toString()).toBe(body);
  expect(wire.provider.requests.at(-1)!.head).not.toMatch(/^x-gateway/im);
  const { end_user, session_id, tags } = (await wire.gateway.row(
    reply.header('x-gateway-request-id')!,
  )) as unknown as Attributed;
  return { end_user, session_id, tags };
}

const NONE = { end_user: null, session_id: null, tags: null };
const MESSAGES =
  '"messages":[{"role":"user","content":"\\"user\\": \\"x\\""},{"role": "user" ,"content":"hi"}]';

/** Larger bodies are searched before they are walked. */
const LONG = 'x'.repeat(4_096);

describe('by default', () => {
  let wire: Wire;
  beforeAll(async () => {
    wire = await Wire.start({ USER_HEADERS: 'x-openwebui-user-email, X-Other' });
  });
  afterAll(() => wire.stop());

  it.each<[string, string[], string, Partial<Attributed>]>([
    ['nothing is named', [], `{"model":"m",${MESSAGES}}`, {}],
    ['the body is no JSON', [], 'user: 7', {}],
    [
      'a header of ours',
      ['X-Other: u3', 'X-Gateway-User: u1', 'X-Gateway-Session: s1'],
      '{"user":"u2"}',
      { end_user: 'u1', session_id: 's1' },
    ],
    ['headers of one choosing', ['X-Other: u3', 'x-openwebui-user-email: u4'], '{}', { end_user: 'u4' }],
    ['the session of an agent', ['X-Claude-Code-Session-Id: s2'], '{}', { session_id: 's2' }],
    ['the session of opencode', ['x-session-affinity: s6', 'X-Session-Id: s7'], '{}', { session_id: 's7' }],
    [
      'the session of a client that names only its affinity',
      ['x-session-affinity: s6'],
      '{}',
      { session_id: 's6' },
    ],
    [
      'a header that only agents send',
      ['x-session-id: s7', 'x-opencode-session: s8'],
      '{}',
      { session_id: 's8' },
    ],
    [
      'the body',
      [],
      `{${MESSAGES},"user":"u5","prompt_cache_key":"s3"}`,
      { end_user: 'u5', session_id: 's3' },
    ],
    ['the body with spaces', [], `{ "user" : "ü😀" , ${MESSAGES}}`, { end_user: 'ü😀' }],
    ['an identifier before the user', [], '{"user":"u6","safety_identifier":"u7"}', { end_user: 'u7' }],
    ["Anthropic's metadata", [], '{"metadata":{"a":1,"user_id":"u8"}}', { end_user: 'u8' }],
    [
      'a deeper member',
      [],
      '{"tools":[{"user":"u9","metadata":{"user_id":"u9"}}],"input":{"user":"u9"}}',
      {},
    ],
    [
      'a large body',
      [],
      `{"input":"${LONG}",${MESSAGES},"user":"u11","prompt_cache_key":"s5"}`,
      { end_user: 'u11', session_id: 's5' },
    ],
    ['a large body that names nothing', [], `{"input":"${LONG}",${MESSAGES}}`, {}],
    ['values of other types', [], '{"user":7,"metadata":"x","prompt_cache_key":null}', {}],
    [
      'a header and the body',
      ['X-Gateway-User: u10'],
      '{"prompt_cache_key":"s4"}',
      { end_user: 'u10', session_id: 's4' },
    ],
    [
      'tags',
      ['X-Gateway-Tags: env=prod, project=se arch,=x,bad,a b=1'],
      '{}',
      { tags: { env: 'prod', project: 'se arch' } },
    ],
  ])('%s', async (_, headers, body, expected) => {
    expect(await attributed(wire, headers, body)).toEqual({ ...NONE, ...expected });
  });

  never.each([1, 7, 4_096, 100_000])('a long chat that is gathered from chunks of %d bytes', async (size) => {
    const key = await wire.gateway.createKey({ models: ['m'] });
    const messages = Array.from({ length: size === 1 ? 70 : 400 }, (_, i) => ({
      role: i % 8 === 7 ? 'assistant' : 'user',
      content: `turn ${i}: "user" \\`.repeat(size === 1 ? 2 : 14),
    }));
    const body = JSON.stringify({ model: 'm', messages, user: 'alice' });
    const client = await wire.connect();
    const head = [`Authorization: Bearer ${key}`, 'Content-Type: application/json'];
    client.send(request(CHAT, [...head, 'Transfer-Encoding: chunked']));
    for (let at = 0; at < body.length; at += size) client.send(chunk(body.slice(at, at + size)));
    client.send(LAST_CHUNK);
    const reply = await client.answer();
    client.destroy();
    expect(reply.body.toString()).toBe(body);
    const row = await wire.gateway.row(reply.header('x-gateway-request-id')!);
    expect(row.end_user).toBe('alice');
  });

  never('stores at most eight tags, and none that contains a gateway key', async () => {
    const tags = Array.from({ length: 10 }, (_, i) => `t${i}=${i}`).join(',');
    const eight = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`t${i}`, `${i}`]));
    expect((await attributed(wire, [`X-Gateway-Tags: ${tags}`], '{}')).tags).toEqual(eight);
    const key = `ptn_${'a'.repeat(38)}`;
    const headers = ['X-Gateway-Tags: a=1,b=' + key, `X-Gateway-User: ${key}`, `X-Gateway-Session: s-${key}`];
    expect(await attributed(wire, headers, '{}')).toEqual(NONE);
  });

  it('groups usage by end user, session and tag', async () => {
    await attributed(
      wire,
      ['X-Gateway-User: group', 'X-Gateway-Session: g', 'X-Gateway-Tags: env=test'],
      '{}',
    );
    await eventually(async () => {
      const response = await fetch(
        `${wire.gateway.url}/admin/v1/usage?group_by=end_user,session,tag:env,tag:none&limit=500`,
        { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } },
      );
      const { data } = (await response.json()) as { data: Record<string, unknown>[] };
      return data.some(
        ({ end_user, session, tags, calls }) =>
          end_user === 'group' &&
          session === 'g' &&
          calls === 1 &&
          JSON.stringify(tags) === '{"env":"test","none":null}',
      );
    });
  });
});

const BODY = '{"user":"u1","prompt_cache_key":"s1"}';
const HEADERS = ['X-Gateway-User: u2'];

it.each<[Record<string, string>, string[], Partial<Attributed>]>([
  [{ ATTRIBUTION: 'headers' }, HEADERS, { end_user: 'u2' }],
  [{ ATTRIBUTION: 'headers' }, [], {}],
  [{ ATTRIBUTION: 'off' }, HEADERS, {}],
  [{ REQUEST_LOG_USERS: 'none' }, HEADERS, { session_id: 's1' }],
  [
    { REQUEST_LOG_USERS: 'hashed' },
    [],
    { end_user: expect.stringMatching(/^[0-9a-f]{32}$/) as string, session_id: 's1' },
  ],
])('with %j and %j', async (settings, headers, expected) => {
  const wire = await Wire.start(settings);
  try {
    const first = await attributed(wire, headers, BODY);
    expect(first).toEqual({ ...NONE, ...expected });
    // The same user has the same hash.
    expect(await attributed(wire, headers, BODY)).toEqual(first);
  } finally {
    await wire.stop();
  }
});
