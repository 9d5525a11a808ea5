import fc from 'fast-check';
import { matchesModels } from '../../src/limit-rules/log-charges.js';
import { counts } from '../../src/limits/ledger/rule-set.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { never } from '../support/never.js';
import { sample } from '../support/property.js';
import { type Issued, limitedForFile } from './limited-gateway.js';

const limited = limitedForFile();
const admin = <T>(method: string, path: string, body?: object) =>
  limited.postern.admin<T>(method, path, body);
const remove = async (path: string) => {
  const response = await fetch(`${limited.postern.url}/admin/v1${path}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect(response.status).toBe(204);
};
let teams = 0;

async function ofNewTeam(members: object = {}): Promise<Issued> {
  const team = `filtered-${++teams}`;
  await admin('POST', '/teams', { name: team });
  return limited.issue({ team, ...members });
}

interface Sent {
  path?: string;
  method?: string;
  headers?: Record<string, string>;
  body?: string | FormData | null;
}

async function send({ key }: Issued, { path, method, headers, body = null }: Sent) {
  const isText = typeof body === 'string';
  const response = await fetch(limited.postern.url + (path ?? '/v1/chat/completions'), {
    method: method ?? 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      ...(isText && { 'content-type': 'application/json' }),
      ...headers,
    },
    body,
  });
  await response.arrayBuffer();
  return { status: response.status, code: response.headers.get('x-gateway-error') };
}

function form(...models: string[]): FormData {
  const parts = new FormData();
  for (const model of models) parts.append('model', model);
  parts.append('file', new Blob(['x']), 'x.wav');
  return parts;
}

/** The filters of the budgets that each row of a key names. */
async function counted(keyId: string, rows: number): Promise<string[][]> {
  const read = () =>
    limited.postern.database.query<{ filters: string[] }>(
      `SELECT ARRAY(SELECT filter FROM limit_rule r WHERE r.nr = ANY (l.charge_rules) ORDER BY 1) AS filters
       FROM request_log l WHERE key_id = $1 ORDER BY id`,
      [keyId],
    );
  await eventually(async () => (await read()).length >= rows);
  return (await read()).map(({ filters }) => filters);
}

const CHEAP = '{"model":"cheap"}';

describe('a budget for some models that rejects calls', () => {
  let key: Issued;
  beforeAll(async () => {
    key = await ofNewTeam({
      endpoints: 'all',
      budgets: [{ tokens: 1_000_000, period: 'day', models: ['dear*'] }],
    });
  });

  never.each<[string, Sent]>([
    ['two members', { body: '{"model":"cheap","model":"dear"}' }],
    ['members in another case', { body: '{"model":"cheap","Model":"dear"}' }],
    ['an escaped member', { body: '{"model":"cheap","mod\\u0065l":"dear"}' }],
    ['models for fallbacks', { body: '{"model":"cheap","models":["dear"]}' }],
    ['fallbacks', { body: '{"model":"cheap","fallbacks":["dear"]}' }],
    ['no model', { body: '{}' }],
    ['null', { body: '{"model":null}' }],
    ['a list', { body: '{"model":["dear"]}' }],
    ['a query', { path: '/v1/chat/completions?model=dear', body: CHEAP }],
    ['another path', { headers: { 'x-original-url': '/v1/messages' }, body: CHEAP }],
    ['another method', { headers: { 'x-http-method-override': 'GET' }, body: CHEAP }],
    ['an encoding', { headers: { 'content-encoding': 'gzip' }, body: CHEAP }],
    ['a form with two models', { path: '/v1/audio/transcriptions', body: form('cheap', 'dear') }],
    ['Anthropic', { path: '/v1/messages', body: '{"model":"cheap","model":"dear"}' }],
  ])('rejects a call that names its model by %s', async (_, sent) => {
    expect(await send(key, sent)).toEqual({ status: 400, code: 'model_not_determined' });
  });

  never('counts models in paths and in forms, and no other one', async () => {
    const own = await ofNewTeam({
      endpoints: 'all',
      budgets: [{ tokens: 1_000_000, period: 'day', models: ['dear*'] }],
    });
    const sent: Sent[] = [
      { path: '/p/default/v1beta/models/dear-1:generateContent', body: '{"contents":[],"model":"cheap"}' },
      { path: '/p/default/v1beta/models/cheap:generateContent', body: '{"contents":[]}' },
      { path: '/p/default/model/dear-1/converse', body: '{"messages":[]}' },
      { path: '/v1/audio/transcriptions', body: form('dear-1') },
      { path: '/v1/audio/transcriptions', body: form('cheap') },
      // It names none.
      { path: '/v1/batches', body: '{"input_file_id":"file-1"}' },
      { path: '/p/default/v1/chat/completions', body: '{"model":"dear-1"}' },
    ];
    for (const one of sent) expect([one.path, (await send(own, one)).status]).toEqual([one.path, 200]);
    const dear = ['model=dear*'];
    expect(await counted(own.id, sent.length)).toEqual([dear, [], dear, dear, [], dear, dear]);
  });

  it('counts its models in any case, because some providers take them so', async () => {
    const own = await ofNewTeam({ budgets: [{ tokens: 150, period: 'day', models: ['dear*'] }] });
    const names = ['Dear-1', 'DEAR', 'dear-1'];
    const calls = [];
    for (const model of names)
      calls.push(await send(own, { body: JSON.stringify({ model, max_tokens: 10 }) }));
    expect(calls).toEqual([
      { status: 200, code: null },
      { status: 402, code: 'insufficient_quota' },
      { status: 402, code: 'insufficient_quota' },
    ]);
    // So does a new budget that counts what was used.
    await admin('PATCH', `/keys/${own.id}`, { budgets: null });
    await counted(own.id, 1);
    await admin('PATCH', `/keys/${own.id}`, {
      budgets: [{ tokens: 5_000, period: 'day', models: ['dEAR*'] }],
    });
    const { data } = await admin<{ data: { used: string }[] }>('GET', `/limits?key=${own.id}`);
    expect(data.map(({ used }) => used)).toEqual(['200']);
  });
});

it('are listed by a provider that they name and by a model that they count', async () => {
  const own = await ofNewTeam({
    budgets: [
      { usd: '1', period: 'day', models: ['Claude-opus-*', 'gpt_5'] },
      { usd: '2', period: 'day', providers: ['default'] },
      { usd: '3', period: 'day', providers: ['default'], models: ['*mini%'] },
      { usd: '4', period: 'day' },
    ],
  });
  const amounts = async (filter: string) => {
    const { data } = await admin<{ data: { amount: string }[] }>('GET', `/limits?key=${own.id}${filter}`);
    return data.map(({ amount }) => amount).sort();
  };
  expect(await amounts('&model=claude-OPUS-4-5')).toEqual(['1.00']);
  // What stands for any characters in SQL does not here.
  expect(await amounts('&model=gptx5')).toEqual([]);
  expect(await amounts('&model=a-mini%25')).toEqual(['3.00']);
  expect(await amounts('&model=a-mini-b')).toEqual([]);
  expect(await amounts('&provider=default')).toEqual(['2.00', '3.00']);
  expect(await amounts('&provider=default&model=o-mini%25')).toEqual(['3.00']);
  expect(await amounts('')).toHaveLength(4);
});

never('count the same calls in Postgres as in admission, whatever characters a pattern has', async () => {
  const text = (characters: string, maxLength: number) =>
    fc.string({ unit: fc.constantFrom(...characters), minLength: 1, maxLength });
  const pair = fc.record({
    models: fc.array(text("***%_\\aA.['", 4), { minLength: 1, maxLength: 3 }),
    name: text("%_\\aA.['\n", 3),
  });
  const pairs = sample(pair, 5_000);
  const rows = await limited.postern.database.query<{ matches: boolean }>(
    `SELECT ${matchesModels('x.name', 'x.models')} AS matches
     FROM jsonb_to_recordset($1) AS x (n int, name text, models text[]) ORDER BY n`,
    [JSON.stringify(pairs.map((one, n) => ({ n, ...one })))],
  );
  const admitted = pairs.map(({ models, name }) =>
    counts({ providers: null, models }, { provider: 'p', model: name }),
  );
  expect(admitted.filter((one) => one).length).toBeGreaterThan(pairs.length / 50);
  expect(pairs.filter((_, n) => rows[n]!.matches !== admitted[n])).toEqual([]);
});

describe('bad limits for some calls', () => {
  const budget = { usd: '1', period: 'day' };
  const random = (length: number) =>
    Array.from({ length }, () => String.fromCharCode(0x21 + Math.floor(Math.random() * 0x5d))).join('');

  it.each<[string, object, RegExp]>([
    ['no models', { models: [] }, /must be a list of 1 to 32 names/],
    [
      '33 models',
      { models: Array.from({ length: 33 }, (_, i) => `m${i}`) },
      /must be a list of 1 to 32 names/,
    ],
    ['null as a model', { models: [null] }, /must be 1 to 128 visible ASCII characters/],
    ['an empty model', { models: [''] }, /must be 1 to 128 visible ASCII characters/],
    ['129 characters', { models: ['m'.repeat(129)] }, /must be 1 to 128 visible ASCII characters/],
    ['other letters', { models: ['модель'] }, /must be 1 to 128 visible ASCII characters/],
    ['a text', { models: 'm' }, /must be a list of 1 to 32 names/],
    [
      'models that are too long together',
      { models: Array.from({ length: 32 }, () => random(128)) },
      /models.*must have at most 2000 characters together; use \* or several budgets/,
    ],
  ])('with %s are rejected with a message', async (_, filter, message) => {
    await expect(ofNewTeam({ budgets: [{ ...budget, ...filter }] })).rejects.toThrow(/400/);
    await expect(ofNewTeam({ budgets: [{ ...budget, ...filter }] })).rejects.toThrow(message);
  });

  it('are the same if they name the same in another order, and twice', async () => {
    const twice = [
      { ...budget, models: ['a', 'b', 'a'] },
      { ...budget, models: ['b', 'a'] },
    ];
    await expect(ofNewTeam({ budgets: twice })).rejects.toThrow(
      /must not contain two budgets of the same kind/,
    );
  });

  it('that are 33 for an owner are rejected with the number', async () => {
    const many = Array.from({ length: 33 }, (_, i) => ({ ...budget, models: [`m${i}`] }));
    await expect(ofNewTeam({ budgets: many })).rejects.toThrow(/must not have more than 32 entries/);
  });
});

it('limits of a provider that is removed stay, count it if it is made again, and let others be changed', async () => {
  const key = await ofNewTeam();
  const provider = { name: 'passing', url: limited.provider.url, secret: 'sk-of-a-provider-0123456789' };
  await admin('POST', '/providers', provider);
  await admin('PATCH', `/keys/${key.id}`, {
    budgets: [{ tokens: 1_000_000, period: 'day', providers: ['passing'] }],
  });
  const sent = { path: '/p/passing/v1/chat/completions', body: CHEAP };
  expect((await send(key, sent)).status).toBe(200);
  await remove('/providers/passing');
  await admin('PATCH', `/keys/${key.id}`, { limits: { requests_per_minute: 600 } });
  await expect(
    admin('PATCH', `/keys/${key.id}`, {
      filtered_limits: [{ providers: ['nobody'], requests_per_minute: 1 }],
    }),
  ).rejects.toThrow(/there is no provider nobody/);
  await admin('POST', '/providers', provider);
  await eventually(async () => (await send(key, sent)).status === 200);
  const rules = await counted(key.id, 2);
  expect(rules).toEqual(rules.map(() => ['provider=passing']));
});
