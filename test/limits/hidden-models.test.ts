import { gzipSync } from 'node:zlib';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { type Issued } from './limited-gateway.js';

// Ways to have a provider read another model than the gateway checks. The keys may only use gpt-5-mini: it alone is on their
// list, or has a price.

let provider: RawProvider;
let postern: TestGateway;
let limited: string;
let everywhere: string;
/** Has a budget in USD. */
let budgeted: string;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body.catch(() => {});
    socket.write(answer('200 OK', [], 'forwarded'));
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
  limited = await postern.createKey({ models: ['gpt-5-mini'] });
  everywhere = await postern.createKey({ models: ['gpt-5-mini'], endpoints: 'all' });
  await postern.admin('POST', '/prices', {
    catalog: 'default',
    model: 'gpt-5-mini',
    input: '1',
    output: '1',
  });
  const issued = await postern.admin<Issued>('POST', '/keys', {
    team: 'default',
    name: 'budgeted',
    endpoints: 'all',
    budgets: [{ usd: '100', period: 'total' }],
  });
  budgeted = issued.key;
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

async function send(key: string, line: string, headers: string[], body: string | Buffer) {
  const client = await RawClient.connect(postern.port);
  client.send(request(line, [`Authorization: Bearer ${key}`, ...headers], body));
  const reply = await client.answer();
  client.destroy();
  return reply;
}

const JSON_TYPE = ['Content-Type: application/json'];
const CHAT = 'POST /v1/chat/completions';
const good = '{"model":"gpt-5-mini"}';
/** An old fastjson takes the quote after `\x` for a digit, and single quotes for those of a text. */
const SWALLOWED = `{"a":"\\x",",'model':'gpt-5','c':":",'d':'","model":"gpt-5-mini","e":"'}//"}`;

function form(...parts: [head: string, text: string][]): string {
  const all = parts.map(([head, text]) => `--XX\r\n${head}\r\n\r\n${text}\r\n`);
  return `${all.join('')}--XX--\r\n`;
}
const FORM = ['Content-Type: multipart/form-data; boundary=XX'];
const AUDIO = 'POST /v1/audio/transcriptions';
const field = (name: string, value: string): [string, string] => [
  `Content-Disposition: form-data; name="${name}"`,
  value,
];
const file: [string, string] = [
  'Content-Disposition: form-data; name="file"; filename="a.mp3"\r\nContent-Type: audio/mpeg',
  'sound',
];
const mini = field('model', 'gpt-5-mini');

type Case = [what: string, body: string | Buffer, headers?: string[], line?: string];
const UNCERTAIN: Case[] = [
  ['two members', '{"model":"gpt-5-mini","model":"gpt-5"}'],
  ['two members, the allowed one last', '{"model":"gpt-5","model":"gpt-5-mini"}'],
  ['two members with the same value', '{"model":"gpt-5-mini","model":"gpt-5-mini"}'],
  ['a member in capitals as well', '{"model":"gpt-5-mini","Model":"gpt-5"}'],
  ['a member in capitals first', '{"MODEL":"gpt-5","model":"gpt-5-mini"}'],
  ['an escaped name as well', '{"model":"gpt-5-mini","\\u006dodel":"gpt-5"}'],
  ['an escaped name in capitals', '{"model":"gpt-5-mini","M\\u004fDEL":"gpt-5"}'],
  [
    'a second member after a long text',
    `{"model":"gpt-5-mini","x":"${'y'.repeat(400_000)}","model":"gpt-5"}`,
  ],
  ['a number', '{"model":5}'],
  ['null', '{"model":null}'],
  ['a list', '{"model":["gpt-5-mini"]}'],
  ['an object', '{"model":{"name":"gpt-5-mini"}}'],
  ['an empty name', '{"model":""}'],
  ['a name of 2,000 characters', `{"model":"gpt-5-mini${' '.repeat(2_000)}"}`],
  ['no member', '{"messages":[]}'],
  ['a nested member only', '{"x":{"model":"gpt-5-mini"}}'],
  ['an empty object', '{}'],
  ['an array', '[{"model":"gpt-5-mini"}]'],
  ['a string', '"gpt-5-mini"'],
  ['trailing data', `${good}{"model":"gpt-5"}`],
  ['a second line', `${good}\n{"model":"gpt-5"}`],
  ['a trailing comma', '{"model":"gpt-5-mini",}'],
  ['a comment', '{"model":"gpt-5-mini"/*,"model":"gpt-5"*/}'],
  ['single quotes', `{"model":"gpt-5-mini",'model':"gpt-5"}`],
  ['a name without quotes', '{"model":"gpt-5-mini",model:"gpt-5"}'],
  ['NaN', '{"model":"gpt-5-mini","x":NaN}'],
  ['a list that ends as an object', '{"x":[1},"model":"gpt-5-mini"}'],
  ['mixed brackets', '{"x":[{"y":1],"model":"gpt-5-mini"}}'],
  ['a raw line break in a model', '{"model":"gpt-5-mini\n"}'],
  ['a raw line break in a name', '{"model":"gpt-5-mini","x\n":1}'],
  ['a NUL in a text', '{"model":"gpt-5-mini","x":"\u0000"}'],
  ['a text that ends elsewhere if \\x is not checked', SWALLOWED],
  ['a wrong escape', '{"model":"gpt-5-mini","x":"\\x"}'],
  ['an unclosed object', '{"model":"gpt-5-mini"'],
  ['a byte order mark', `\ufeff${good}`],
  ['UTF-16', Buffer.from(good, 'utf16le')],
  [
    'bytes that are not UTF-8',
    Buffer.concat([
      Buffer.from('{"model":"gpt-5-mini","mod'),
      Buffer.from([0xff]),
      Buffer.from('el":"gpt-5"}'),
    ]),
  ],
  ['very deep nesting', `{"model":"gpt-5-mini","x":${'['.repeat(5_000)}${']'.repeat(5_000)}}`],
  ['a list of fallback models', '{"model":"gpt-5-mini","models":["gpt-5"]}'],
  ['fallbacks', '{"model":"gpt-5-mini","fallbacks":["gpt-5"]}'],
  ['gzip', gzipSync(good), [...JSON_TYPE, 'Content-Encoding: gzip']],
  ['plain JSON that says it is gzip', good, [...JSON_TYPE, 'Content-Encoding: gzip']],
  ['two Content-Types', good, [...JSON_TYPE, 'Content-Type: multipart/form-data; boundary=XX']],
  ['a form type', good, ['Content-Type: application/x-www-form-urlencoded']],
  ['another charset', good, ['Content-Type: application/json; charset=utf-7']],
  ['a form', 'model=gpt-5-mini&model=gpt-5', ['Content-Type: application/x-www-form-urlencoded']],
  ['another model in the query', good, JSON_TYPE, 'POST /v1/chat/completions?model=gpt-5'],
  ['an encoded one in the query', good, JSON_TYPE, 'POST /v1/chat/completions?x=1&mod%65l=gpt-5'],
  ['an array in the query', good, JSON_TYPE, 'POST /v1/chat/completions?Model[]=gpt-5'],
  ['no body', ''],
  ['two parts', form(file, mini, field('model', 'gpt-5')), FORM, AUDIO],
  ['a part in capitals', form(mini, field('MODEL', 'gpt-5')), FORM, AUDIO],
  ['an array of parts', form(mini, field('model[]', 'gpt-5')), FORM, AUDIO],
  ['a part without a model', form(file), FORM, AUDIO],
  [
    'a model as a file',
    form(['Content-Disposition: form-data; name="model"; filename="m"', 'gpt-5-mini']),
    FORM,
    AUDIO,
  ],
  [
    'a part with an extended name',
    form(mini, ['Content-Disposition: form-data; name="x"; name*=utf-8\'\'model', 'gpt-5']),
    FORM,
    AUDIO,
  ],
  [
    'a part with two names',
    form(mini, ['Content-Disposition: form-data; name="x"; name="model"', 'gpt-5']),
    FORM,
    AUDIO,
  ],
  [
    'a part with an escaped name',
    form(mini, ['Content-Disposition: form-data; name="mod\\el"', 'gpt-5']),
    FORM,
    AUDIO,
  ],
  [
    'a part with an encoded name',
    form(mini, ['Content-Disposition: form-data; name="mod%65l"', 'gpt-5']),
    FORM,
    AUDIO,
  ],
  [
    'a part with two dispositions',
    form(mini, [
      'Content-Disposition: form-data; name="x"\r\nContent-Disposition: form-data; name="model"',
      'gpt-5',
    ]),
    FORM,
    AUDIO,
  ],
  [
    'a part with a folded header',
    form(mini, ['Content-Disposition: form-data;\r\n name="model"', 'gpt-5']),
    FORM,
    AUDIO,
  ],
  [
    'a part in base64',
    form(['Content-Disposition: form-data; name="model"\r\nContent-Transfer-Encoding: base64', 'Z3B0LTU=']),
    FORM,
    AUDIO,
  ],
  [
    'a part in another charset',
    form([
      'Content-Disposition: form-data; name="model"\r\nContent-Type: text/plain; charset=utf-16',
      'gpt-5-mini',
    ]),
    FORM,
    AUDIO,
  ],
  ['a _charset_ part', form(field('_charset_', 'utf-16'), mini), FORM, AUDIO],
  [
    'a part behind bare line feeds',
    form(mini, field('x', '\n--XX\nContent-Disposition: form-data; name="model"\n\ngpt-5')),
    FORM,
    AUDIO,
  ],
  ['a preamble', `--XX\nContent-Disposition: form-data; name="model"\n\ngpt-5\n${form(mini)}`, FORM, AUDIO],
  [
    'an epilogue',
    `${form(mini)}--XX\r\nContent-Disposition: form-data; name="model"\r\n\r\ngpt-5\r\n--XX--\r\n`,
    FORM,
    AUDIO,
  ],
  ['an unclosed form', form(mini).slice(0, -6), FORM, AUDIO],
  ['a form without a boundary', form(mini), ['Content-Type: multipart/form-data'], AUDIO],
  [
    'a form with two boundaries',
    form(mini),
    ['Content-Type: multipart/form-data; boundary=YY; boundary=XX'],
    AUDIO,
  ],
  ['a compressed form', gzipSync(form(mini)), [...FORM, 'Content-Encoding: gzip'], AUDIO],
  ['too many parts', form(mini, ...Array.from({ length: 1_000 }, () => field('x', ''))), FORM, AUDIO],
  ['an escape in the path', '{}', JSON_TYPE, 'POST /p/default/v1beta/models/gpt-5-mini%3Fx:generateContent'],
];

never.each(UNCERTAIN)('rejects with 400: %s', async (_, body, headers = JSON_TYPE, line = CHAT) => {
  for (const key of [everywhere, limited, budgeted]) {
    const reply = await send(key, line, headers, body);
    if (key === limited && reply.header('x-gateway-error') === 'endpoint_not_allowed') continue;
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([400, 'model_not_determined']);
    expect(reply.header('x-should-retry')).toBe('false');
    const { error } = JSON.parse(reply.body.toString()) as { error: { type: string; message: string } };
    expect(error.type).toBe('invalid_request_error');
    expect(error.message).toMatch(/^The model of this request cannot be determined: .+\.$/);
  }
});

/** Not on the list, which is exact; priced all the same, as prices match in any case. */
const OTHER_LETTERS: Case = ['another model in other letters', '{"model":"GPT-5-mini"}'];
const NOT_ALLOWED: Case[] = [
  OTHER_LETTERS,
  ['another model', '{"model":"gpt-5"}'],
  ['another model by escapes', '{"model":"gpt\\u002d5"}'],
  ['a name that begins with an allowed one', '{"model":"gpt-5-mini-2026"}'],
  ['a name with a space', '{"model":" gpt-5-mini"}'],
  ['a name with a NUL', '{"model":"gpt-5-mini\\u0000"}'],
  ['another model behind the messages', `{"messages":["${'x'.repeat(300_000)}"],"model":"gpt-5"}`],
  ['another model in a form', form(file, field('model', 'gpt-5')), FORM, AUDIO],
  ['another Anthropic model', '{"model":"claude-opus"}', JSON_TYPE, 'POST /v1/messages'],
  [
    'another model in the path of Gemini',
    '{"model":"gpt-5-mini"}',
    JSON_TYPE,
    'POST /p/default/v1beta/models/gemini-2:generateContent',
  ],
  [
    'another model in an escaped path',
    '{"model":"gpt-5-mini"}',
    JSON_TYPE,
    'POST /p/default/v1beta/models/gpt-5-mini%2Fgpt-5:generateContent',
  ],
];
const NOT_ALLOWED_EVERYWHERE: Case[] = [
  [
    'a deployment of Azure',
    good,
    JSON_TYPE,
    'POST /p/default/openai/deployments/gpt-5/chat/completions?api-version=1',
  ],
  ['a model of Bedrock', good, JSON_TYPE, 'POST /p/default/model/gpt-5/converse'],
  [
    'a model of Vertex AI',
    good,
    JSON_TYPE,
    'POST /v1/projects/p/locations/l/publishers/google/models/gemini-2:generateContent',
  ],
  [
    'a model in the express mode of Vertex AI',
    good,
    JSON_TYPE,
    'POST /p/default/v1beta1/publishers/google/models/gemini-2:generateContent',
  ],
  [
    'another model of the Responses API of Azure',
    '{"model":"gpt-5"}',
    JSON_TYPE,
    'POST /p/default/openai/responses?api-version=1',
  ],
  ['a model of another version of Gemini', good, JSON_TYPE, 'POST /v1/models/gemini-2:generateContent'],
  ['an interaction, which may name an agent', good, JSON_TYPE, 'POST /p/default/v1beta/interactions'],
  [
    'another model below a prefix',
    '{"model":"gpt-5"}',
    JSON_TYPE,
    'POST /p/default/openai/v1/chat/completions',
  ],
  ['another model of Cohere', '{"model":"gpt-5"}', JSON_TYPE, 'POST /p/default/v2/chat'],
  ['another model of Ollama', '{"model":"gpt-5"}', JSON_TYPE, 'POST /p/default/api/chat'],
  ['one model below a prefix', '', [], 'GET /p/default/api/v1/models/gpt-5'],
  ['files', form(mini), FORM, 'POST /v1/files'],
  ['batches with a model', good, JSON_TYPE, 'POST /v1/batches'],
  ['batches with a model in the query', good, JSON_TYPE, 'POST /v1/batches?model=gpt-5-mini'],
  ['a list of files', '', [], 'GET /v1/files'],
  ['one model that is not allowed', '', [], 'GET /v1/models/gpt-5'],
  ['another spelling of an endpoint', good, JSON_TYPE, 'POST /v1/chat/Completions'],
  ['a slash after an endpoint', good, JSON_TYPE, 'POST /v1/chat/completions/'],
  ['another method', good, JSON_TYPE, 'PUT /v1/chat/completions'],
];

never.each([
  ...NOT_ALLOWED.map((one): [string, () => string, Case] => [one[0], () => limited, one]),
  ...[...NOT_ALLOWED, ...NOT_ALLOWED_EVERYWHERE].map((one): [string, () => string, Case] => [
    `${one[0]}, with all endpoints`,
    () => everywhere,
    one,
  ]),
])('rejects with 403: %s', async (_, key, [, body, headers = JSON_TYPE, line = CHAT]) => {
  const reply = await send(key(), line, headers, body);
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([403, 'model_not_allowed']);
  expect(reply.header('x-should-retry')).toBe('false');
});

/** Reading the description of a model costs nothing. */
const isDescription = ([, , , line = '']: Case) => /^GET .*\/models\//.test(line);

const NOT_PRICED = [...NOT_ALLOWED, ...NOT_ALLOWED_EVERYWHERE].filter(
  (one) => one !== OTHER_LETTERS && !isDescription(one),
);

never.each(NOT_PRICED)(
  'rejects with 403, of a key with a budget: %s',
  async (_, body, headers = JSON_TYPE, line = CHAT) => {
    const reply = await send(budgeted, line, headers, body);
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([403, 'model_not_priced']);
    expect(reply.header('x-should-retry')).toBe('false');
  },
);

never.each<[string, string[], string]>([
  ['a header that overrides the path', ['X-Original-URL: /v1/batches'], CHAT],
  ['a parameter that overrides the method', [], `${CHAT}?_method=PUT`],
  ['a realtime call with two models', [], 'GET /v1/realtime?model=gpt-5-mini&model=gpt-5'],
])('rejects with 400, with all endpoints: %s', async (_, headers, line) => {
  for (const key of [everywhere, budgeted]) {
    const reply = await send(key, line, [...JSON_TYPE, ...headers], line.startsWith('POST') ? good : '');
    expect([reply.status, reply.header('x-gateway-error')]).toEqual([400, 'model_not_determined']);
  }
});

it.each(['gpt-5', 'gpt-5-mini'])(
  'rejects a WebSocket to %s with 426: its key may open none',
  async (model) => {
    for (const key of [limited, everywhere, budgeted]) {
      const upgrade = ['Connection: Upgrade', 'Upgrade: websocket'];
      const reply = await send(key, `GET /v1/realtime?model=${model}`, upgrade, '');
      expect([reply.status, reply.header('x-gateway-error')]).toEqual([426, 'upgrade_required']);
    }
  },
);

it('rejects a body of over 32 MiB with 413, announced or not, and streams it for a key without rules', async () => {
  const client = await RawClient.connect(postern.port);
  const head = [`Authorization: Bearer ${limited}`, ...JSON_TYPE, 'Content-Length: 33554433'];
  client.send(request(CHAT, head));
  const announced = await client.answer();
  client.destroy();
  expect([announced.status, announced.header('x-gateway-error')]).toEqual([413, 'request_too_large']);

  const chunked = await RawClient.connect(postern.port);
  chunked.send(
    request(CHAT, [`Authorization: Bearer ${limited}`, ...JSON_TYPE, 'Transfer-Encoding: chunked']),
  );
  const part = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(1_048_576, 0x20), Buffer.from('\r\n')]);
  for (let i = 0; i < 33; i++) chunked.send(part);
  const late = await chunked.answer();
  chunked.destroy();
  expect([late.status, late.header('x-gateway-error')]).toEqual([413, 'request_too_large']);
});

const ALLOWED: Case[] = [
  ['JSON', good],
  ['JSON without a type', good, []],
  [
    'JSON with spaces, duplicates elsewhere and escapes',
    ' {"a":1,"a":2, "m\\u006fdel" : "gpt\\u002d5-mini"}\r\n',
  ],
  ['a nested model of another name', '{"x":{"model":"gpt-5"},"model":"gpt-5-mini"}'],
  // No parser ends a text there and goes on.
  ['a raw line break in another text', '{"model":"gpt-5-mini","x":"\n"}'],
  ['a charset', good, ['Content-Type: application/json; charset=UTF-8']],
  ['a form', form(file, mini), FORM, AUDIO],
  [
    'a form as .NET writes it',
    '--XX\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=model\r\n\r\ngpt-5-mini\r\n--XX--\r\n',
    ['Content-Type: multipart/form-data; boundary="XX"'],
    AUDIO,
  ],
  ['a path', '{}', JSON_TYPE, 'POST /p/default/v1beta/models/gpt-5-mini:generateContent'],
  ['a query', good, JSON_TYPE, `${CHAT}?api-version=1`],
];

never.each(ALLOWED)(
  'forwards what is certain and allowed: %s',
  async (_, body, headers = JSON_TYPE, line = CHAT) => {
    for (const key of [limited, budgeted]) {
      const reply = await send(key, line, headers, body);
      expect([reply.status, reply.body.toString()]).toEqual([200, 'forwarded']);
      expect((await provider.requests.at(-1)!.body).bytes.toString()).toBe(body.toString());
    }
  },
);

it('forwarded only these, and left no row for the others', async () => {
  const forwarded = 2 * ALLOWED.length;
  expect(provider.requests).toHaveLength(forwarded);
  const models = await eventually(async () => {
    const rows = await postern.database.query<{ model: string | null }>('SELECT model FROM request_log');
    return rows.length >= forwarded && rows.map(({ model }) => model);
  });
  expect(models).toHaveLength(forwarded);
  expect(new Set(models)).toEqual(new Set(['gpt-5-mini']));
});
