import { deferred } from '../support/deferred.js';
import { request } from '../support/raw-client.js';
import { answer } from '../support/raw-provider.js';
import { answersOn, echo, Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterEach(() => {
  wire.provider.script = echo;
});
afterAll(() => wire.stop());

const LINE = 'POST /v1/chat/completions';
const numbered = (n: number) => request(`${LINE}?n=${n}`, [wire.auth], `body ${n}`);

it('answers pipelined requests in their order, each with its own answer', async () => {
  const secondAnswered = deferred();
  wire.provider.script = async (req) => {
    const n = Number(/n=(\d+)/.exec(req.head)![1]);
    const { bytes } = await req.body;
    // The provider answers the second before the first.
    if (n === 0) await secondAnswered.promise;
    req.socket.write(answer('200 OK', [`X-N: ${n}`], bytes));
    if (n === 1) secondAnswered.resolve();
  };
  const client = await wire.connect();
  client.send(Buffer.concat(Array.from({ length: 20 }, (_, n) => numbered(n))));
  const replies = await answersOn(client, 20);
  client.destroy();
  expect(replies.map((reply) => [reply.header('x-n'), reply.body.toString()])).toEqual(
    Array.from({ length: 20 }, (_, n) => [String(n), `body ${n}`]),
  );
  await wire.expectSound(20);
});

it('answers what came whole before it refuses what did not', async () => {
  const refused = deferred();
  wire.provider.script = async (req) => {
    await refused.promise;
    await echo(req);
  };
  const client = await wire.connect();
  client.send(Buffer.concat([numbered(1), numbered(2), Buffer.from('NONSENSE\r\n\r\n')]));
  // The provider is held until a later connection was served: the fault has been seen by then.
  const other = await wire.connect();
  other.send('NONSENSE\r\n\r\n');
  await other.answer();
  refused.resolve();
  const replies = await answersOn(client, 4);
  expect(replies.map(({ status, body }) => [status, body.toString().slice(0, 6)])).toEqual([
    [200, 'body 1'],
    [200, 'body 2'],
    [400, '{"erro'],
  ]);
  await client.closed;
  await wire.expectSound(2);
});

it('keeps refusals in their place among answers', async () => {
  const client = await wire.connect();
  client.send(
    Buffer.concat([
      numbered(1),
      request('POST /v1/../x', [wire.auth], 'a body'),
      numbered(2),
      request(LINE, [], 'a body'),
      request('POST /v1/x', [wire.auth, 'Host: second.test'], 'a body'),
      numbered(3),
    ]),
  );
  const replies = await answersOn(client, 6);
  expect(replies.map(({ status }) => status)).toEqual([200, 400, 200, 401, 400]);
  await client.closed;
  await wire.expectSound(2);
});
