import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { PendingResponses } from '../../src/idempotency/pending-responses.service.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { TcpForwarder } from '../support/tcp-forwarder.js';

let provider: RawProvider;
let gateway: TestGateway;
let key: string;
/** Answers once it is let, for what a test needs of time. */
let hold: () => Promise<unknown> = () => Promise.resolve();

beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    await hold();
    const content = `answer ${provider.requests.length}`;
    const body = { id: 'chatcmpl-1', object: 'chat.completion', choices: [{ message: { content } }] };
    req.socket.write(answer('200 OK', ['Content-Type: application/json'], JSON.stringify(body)));
  });
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
  key = await gateway.createKey({ idempotency: 'replay' });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});
beforeEach(() => {
  provider.requests.length = 0;
  hold = () => Promise.resolve();
});

const messages = [{ role: 'user' as const, content: 'hello' }];
const client = (url = gateway.url, maxRetries = 2) =>
  new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries });
const ask = (from: OpenAI, headers: Record<string, string>, content = 'hello') =>
  from.chat.completions.create({ model: 'm', messages: [{ role: 'user', content }] }, { headers });

it('a connection that is cut before the head costs the openai SDK no second call', async () => {
  const forwarder = await TcpForwarder.to(gateway.url);
  await forwarder.open();
  let cut = false;
  hold = async () => {
    if (cut) return;
    cut = true;
    await forwarder.close();
    await forwarder.open();
    // The SDK tries again, and its retry waits for this call.
    await eventually(() => gateway.gateway.app.get(PendingResponses).waiting === 1);
  };
  const reply = await ask(client(forwarder.url.replace(/\/$/, '')), { 'Idempotency-Key': 'cut' });
  expect(reply.choices[0]!.message.content).toBe('answer 1');
  expect([cut, provider.requests.length]).toEqual([true, 1]);
  await forwarder.close();
});

it("the openai SDK's own idempotencyKey option sends nothing", async () => {
  await client().chat.completions.create({ model: 'm', messages }, { idempotencyKey: 'option' });
  const names = provider.requests[0]!.headers.map(([name]) => name.toLowerCase());
  expect(names).not.toContain('idempotency-key');
});

it('422: another body is not tried again', async () => {
  await ask(client(), { 'Idempotency-Key': 'body' });
  const fault: unknown = await ask(client(), { 'Idempotency-Key': 'body' }, 'other').catch((e: unknown) => e);
  expect(fault).toBeInstanceOf(OpenAI.UnprocessableEntityError);
  expect(fault).toMatchObject({ status: 422, code: 'idempotency_mismatch', type: 'invalid_request_error' });
  expect(provider.requests.length).toBe(1);
});

it('400: a malformed key is not tried again', async () => {
  const fault: unknown = await ask(client(), { 'Idempotency-Key': 'a b' }).catch((e: unknown) => e);
  expect(fault).toBeInstanceOf(OpenAI.BadRequestError);
  expect(fault).toMatchObject({ status: 400, code: 'invalid_idempotency_key' });
  expect(provider.requests.length).toBe(0);
});

it('409: an unknown outcome is not retried, by either SDK', async () => {
  await gateway.database.query(
    `CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
       'BEGIN NEW.lease_until = now(); RETURN NEW; END';
     CREATE TRIGGER lose BEFORE INSERT OR UPDATE ON idempotency_record FOR EACH ROW EXECUTE FUNCTION lose()`,
  );
  hold = () => new Promise(() => {});
  const headers = { 'Idempotency-Key': 'lost' };
  const anthropic = new Anthropic({ apiKey: key, baseURL: gateway.url, authToken: null });
  const say = (maxRetries = 2) =>
    anthropic.messages.create({ model: 'm', max_tokens: 1, messages }, { headers, maxRetries });
  const running = [ask(client(gateway.url, 0), headers), say(0)].map((call) => call.catch(() => {}));
  await eventually(() => provider.requests.length === 2);
  const faults = await Promise.all(
    [ask(client(), headers), say()].map((call) => call.catch((e: unknown) => e)),
  );
  expect(faults[0]).toBeInstanceOf(OpenAI.ConflictError);
  expect(faults[0]).toMatchObject({ status: 409, code: 'idempotency_outcome_unknown' });
  expect(faults[1]).toBeInstanceOf(Anthropic.ConflictError);
  expect(faults[1]).toMatchObject({ status: 409, type: 'invalid_request_error' });
  expect(provider.requests.length).toBe(2);
  await gateway.database.query('DROP TRIGGER lose ON idempotency_record');
  for (const { socket } of provider.requests) socket.destroy();
  await Promise.all(running);
});
