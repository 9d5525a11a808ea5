import { replies, Routed } from './routed.js';

const USAGE = JSON.stringify({ usage: { prompt_tokens: 1_000, completion_tokens: 1_000 } });
const JSON_TYPE = ['Content-Type: application/json'];
const ANSWER = replies('200 OK', JSON_TYPE, USAGE);
const REFUSED = replies('429 X', JSON_TYPE, '{}');

let routed: Routed;
beforeAll(async () => {
  routed = await Routed.start();
  const { gateway, providers } = routed;
  for (const name of ['a', 'b'] as const) {
    const url = `${providers[name].url}/openai/deployments/cheap`;
    await gateway.admin('POST', '/providers', { name: `deployment-${name}`, url, secret: 'sk-0123456789' });
  }
});
afterAll(() => routed.gateway.stop());

async function send(targets: string[], model: string, members: object) {
  const name = await routed.route({ targets: targets.map((provider) => ({ provider })) });
  const key = await routed.gateway.createKey({ endpoints: 'all', ...members });
  const response = await fetch(`${routed.gateway.url}/p/${name}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, max_tokens: 10, messages: [] }),
  });
  await response.text();
  const id = response.headers.get('x-gateway-request-id')!;
  return { status: response.status, rows: () => routed.rows({ header: () => id }) };
}

const RULES: [string, object][] = [
  ['a model list', { models: ['cheap'] }],
  [
    'a budget',
    {
      budgets: [
        { tokens: 1e9, period: 'day' },
        { usd: '5', period: 'day' },
      ],
    },
  ],
];

describe.each(RULES)('with %s', (_, members) => {
  beforeAll(async () => {
    for (const catalog of ['a', 'b', 'deployment-a', 'deployment-b']) {
      const price = { catalog, model: 'cheap', input: '1', output: '1' };
      await routed.gateway.admin('POST', '/prices', price).catch(() => {});
    }
  });

  it('sends a call that was admitted with the model of a deployment to no target that reads another from the body', async () => {
    routed.script({ a: REFUSED, b: ANSWER });
    expect((await send(['deployment-a', 'b'], 'dear', members)).status).toBe(429);
    expect(routed.counts).toEqual([1, 0, 0]);
  });

  it('sends one that was admitted with the model of the body to no deployment', async () => {
    routed.script({ a: REFUSED, b: ANSWER });
    expect((await send(['a', 'deployment-b'], 'cheap', members)).status).toBe(429);
    expect(routed.counts).toEqual([1, 0, 0]);
  });

  it('sends one to another deployment of the same name', async () => {
    routed.script({ a: REFUSED, b: ANSWER });
    expect((await send(['deployment-a', 'deployment-b'], 'dear', members)).status).toBe(200);
  });
});

it('without such rules names in each row the model that the target reads', async () => {
  routed.script({ a: REFUSED, b: ANSWER });
  const first = await send(['deployment-a', 'b'], 'dear', {});
  expect((await first.rows()).map(({ model }) => model)).toEqual(['cheap', 'dear']);
  routed.script({ a: REFUSED, b: ANSWER });
  const second = await send(['a', 'deployment-b'], 'dear', {});
  expect((await second.rows()).map(({ model }) => model)).toEqual(['dear', 'cheap']);
});
