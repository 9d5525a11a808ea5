import { answer, type ReceivedRequest } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const CALL = 'POST /v1/chat/completions';
const STRAY = answer('200 OK', ['X-Stray: 1'], 'another answer');

/** Answers each request with its own body, on whatever connection it comes. */
async function echo(req: ReceivedRequest) {
  req.socket.write(answer('200 OK', [], (await req.body).bytes));
}

async function expectOwnAnswers() {
  wire.provider.script = echo;
  for (const body of ['one', 'two', 'three']) {
    const reply = await wire.call(CALL, [], body);
    expect([reply.status, reply.header('x-stray'), reply.body.toString()]).toEqual([200, undefined, body]);
  }
}

it.each([
  ['garbage', Buffer.from('garbage')],
  ['a line end', Buffer.from('\r\n\r\n')],
  ['a whole second answer', STRAY],
  ['the beginning of a second answer', STRAY.subarray(0, 20)],
])('%s in the same write as the answer reaches nobody', async (_, extra) => {
  wire.provider.script = async (req) => {
    req.socket.write(Buffer.concat([answer('200 OK', [], (await req.body).bytes), extra]));
  };
  expect((await wire.call(CALL, [], 'first')).body.toString()).toBe('first');
  await expectOwnAnswers();
});

it.each([
  ['a whole second answer', STRAY],
  ['the head of a second answer', STRAY.subarray(0, STRAY.indexOf('\r\n\r\n'))],
  ['garbage', Buffer.from('garbage')],
])('%s on an idle connection ends it and reaches nobody', async (_, extra) => {
  wire.provider.script = echo;
  expect((await wire.call(CALL, [], 'first')).body.toString()).toBe('first');
  const idle = wire.provider.requests.at(-1)!;
  idle.socket.write(extra);
  // Nothing but the stray bytes can have made the gateway close it: its idle time is far from over.
  await idle.closed;
  await expectOwnAnswers();
});

it('a body longer than its length is cut there and the rest reaches nobody', async () => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay'), STRAY]));
  };
  expect((await wire.call(CALL, [], '{}')).body.toString()).toBe('ok');
  await expectOwnAnswers();
});
