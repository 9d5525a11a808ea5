import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { request } from '../support/raw-client.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const CALL = 'POST /v1/chat/completions';

/** Connections to the provider that a number of calls, one after the other, take beyond those there were. */
async function connectionsFor(calls: number, headers: string[]): Promise<number> {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', headers, 'ok'));
    if (headers.includes('Connection: close')) req.socket.end();
  };
  const before = wire.provider.connections;
  const client = await wire.connect();
  for (let i = 0; i < calls; i++) {
    client.send(request(CALL, [wire.auth], '{}'));
    const reply = await client.answer();
    expect([reply.body.toString(), reply.header('connection')]).toEqual(['ok', 'keep-alive']);
  }
  client.destroy();
  return wire.provider.connections - before;
}

it('calls one after the other share a connection to the provider', async () => {
  expect(await connectionsFor(1, [])).toBe(1);
  // From another connection of a client too. One that is idle for as long as a busy machine may stall is closed.
  await eventually(async () => (await connectionsFor(100, [])) === 0);
});

it('calls side by side share as few as are needed', async () => {
  const before = wire.provider.connections;
  await Promise.all(Array.from({ length: 8 }, () => connectionsFor(25, [])));
  expect(wire.provider.connections - before).toBeLessThanOrEqual(8);
});

never('a provider that closes is taken at its word, and its client keeps its own connection', async () => {
  // Those that lie idle are used up first.
  await connectionsFor(10, ['Connection: close']);
  expect(await connectionsFor(5, ['Connection: close'])).toBe(5);
});

it('a provider that keeps connections for a moment only gets a new one each time, before it can close the old', async () => {
  await connectionsFor(10, ['Keep-Alive: timeout=1']);
  expect(await connectionsFor(5, ['Keep-Alive: timeout=1'])).toBe(5);
});

it('a provider that keeps them for long is held to no more than that', async () => {
  expect(await connectionsFor(5, ['Keep-Alive: timeout=600, max=1000'])).toBe(1);
  expect(await connectionsFor(5, ['Keep-Alive: timeout=600, max=1000'])).toBe(0);
});

it('a hint is that connection’s own: it does not end it sooner than it says', async () => {
  await connectionsFor(1, ['Keep-Alive: timeout=3']);
  const idle = wire.provider.requests.at(-1)!;
  // One second is left of its three, and the gateway is the one to close: nobody can be answered by a closed door.
  await idle.closed;
  expect(await connectionsFor(1, [])).toBe(1);
});

it('a client that closes is taken at its word, and the connection to the provider stays', async () => {
  await eventually(async () => {
    await connectionsFor(1, []);
    const before = wire.provider.connections;
    for (let i = 0; i < 3; i++) {
      const client = await wire.connect();
      client.send(request(CALL, [wire.auth, 'Connection: close'], '{}'));
      expect((await client.answer()).header('connection')).toBe('close');
      await client.closed;
    }
    return wire.provider.connections === before;
  });
});

it('tells its client how long it keeps connections: longer than the 60 s of load balancers', async () => {
  const reply = await wire.call(CALL, [], '{}');
  expect(Number(/^timeout=(\d+)/.exec(reply.header('keep-alive')!)![1])).toBeGreaterThan(60);
});
