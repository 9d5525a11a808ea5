import { FakeProvider } from '../../src/testing/index.js';

let provider: FakeProvider;
beforeEach(async () => (provider = await FakeProvider.start()));
afterEach(() => provider.stop());

const post = (body = '{"model":"m"}') =>
  fetch(`${provider.url}/v1/chat/completions?a=1`, { method: 'POST', headers: { 'X-One': 'a' }, body });

it('responds a chat completion unless told otherwise, and records what it received', async () => {
  const response = await post('{"model":"ä"}');
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
  expect(await response.json()).toMatchObject({ usage: { prompt_tokens: 3, completion_tokens: 2 } });
  const [request, ...more] = provider.requests;
  expect(more).toEqual([]);
  expect([request!.method, request!.url, request!.headers['x-one']]).toEqual([
    'POST',
    '/v1/chat/completions?a=1',
    'a',
  ]);
  expect(request!.body).toEqual(Buffer.from('{"model":"ä"}'));
  expect(request!.json()).toEqual({ model: 'ä' });
  expect(request!.rawHeaders.map((name) => name.toLowerCase())).toContain('x-one');
});

it('responds one after the other, and the last one from then on', async () => {
  provider.respond({ status: 429, headers: { 'retry-after': '1' }, json: { error: {} } }, (request) => ({
    status: 201,
    body: request.body,
    headers: { 'content-type': 'text/plain' },
  }));
  const first = await post();
  expect([first.status, first.headers.get('retry-after'), await first.text()]).toEqual([
    429,
    '1',
    '{"error":{}}',
  ]);
  for (const body of ['one', 'two']) {
    const response = await post(body);
    const type = response.headers.get('content-type');
    expect([response.status, type, await response.text()]).toEqual([201, 'text/plain', body]);
  }
});

it('sends events', async () => {
  provider.respond({
    sse: [{ choices: [] }, { event: 'message_start', data: { type: 'message_start' } }, '[DONE]'],
    eventDelayMs: 1,
    delayMs: 1,
  });
  const response = await post();
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  expect(await response.text()).toBe(
    'data: {"choices":[]}\n\nevent: message_start\ndata: {"type":"message_start"}\n\ndata: [DONE]\n\n',
  );
});

it('breaks its connection', async () => {
  provider.respond({ sse: ['a'], breaks: true }, { breaks: true }, { body: 'whole' });
  const cut = await post();
  await expect(cut.text()).rejects.toThrow();
  await expect(post()).rejects.toThrow();
  expect(await (await post()).text()).toBe('whole');
});

it('stops while it responds', async () => {
  provider.respond({ delayMs: 600_000 });
  const calling = expect(post()).rejects.toThrow();
  while (provider.requests.length === 0) await new Promise(setImmediate);
  await provider.stop();
  await provider.stop();
  await calling;
});
