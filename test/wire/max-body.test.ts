import { eventually } from '../support/eventually.js';
import { type RawClient, request } from '../support/raw-client.js';
import type { ReceivedRequest } from '../support/raw-provider.js';
import { echo, Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start({ MAX_BODY_BYTES: '1000' });
});
afterAll(() => wire.stop());
beforeEach(() => {
  wire.provider.script = echo;
});

const CALL = 'POST /v1/chat/completions';
const CHUNKED = 'Transfer-Encoding: chunked';
const chunkOf = (size: number) => `${size.toString(16)}\r\n${'a'.repeat(size)}\r\n`;

it('a body of exactly the limit passes, with a length and in chunks', async () => {
  const body = 'a'.repeat(1_000);
  expect((await wire.call(CALL, [], body)).body.toString()).toBe(body);
  const reply = await wire.call(CALL, [CHUNKED], `${chunkOf(500)}${chunkOf(500)}0\r\n\r\n`);
  expect(reply.body.toString()).toBe(body);
  await wire.expectSound(2);
});

it('a longer length is a 413 before anything is forwarded', async () => {
  wire.expectRefusal(await wire.call(CALL, [], 'a'.repeat(1_001)), 413, 'request_too_large');
  await wire.expectSound(0);
});

it('chunks that pass the limit at once are a 413 before anything is forwarded', async () => {
  const client = await wire.connect();
  client.send(request(CALL, [wire.auth, CHUNKED], chunkOf(1_001)));
  wire.expectRefusal(await client.answer(), 413, 'request_too_large');
  await expectTheRestToBeRest(client);
  await wire.expectSound(1);
});

it('chunks that pass the limit bit by bit are a 413, and the upload ends without its last chunk', async () => {
  const requests: ReceivedRequest[] = [];
  wire.provider.script = async (req) => {
    requests.push(req);
    await req.closed;
  };
  const client = await wire.connect();
  client.send(request(CALL, [wire.auth, CHUNKED], chunkOf(400)));
  await eventually(() => requests.length === 1);
  client.send(chunkOf(400) + chunkOf(400));
  const reply = await client.answer();
  wire.expectRefusal(reply, 413, 'request_too_large');
  expect(reply.header('x-should-retry')).toBe('false');
  await requests[0]!.closed;
  await expect(requests[0]!.body).rejects.toThrow();
  const row = await wire.gateway.row(reply.header('x-gateway-request-id')!);
  expect(row).toMatchObject({ outcome: 'client_error', status: 413, error_code: 'request_too_large' });
  await expectTheRestToBeRest(client);
  await wire.expectSound(2);
});

/** The rest of the body is the rest of the body, and the connection serves on. */
async function expectTheRestToBeRest(client: RawClient): Promise<void> {
  wire.provider.script = echo;
  client.send(`${chunkOf(300)}0\r\n\r\n`);
  client.send(request(CALL, [wire.auth], 'mine'));
  expect((await client.answer()).body.toString()).toBe('mine');
  client.destroy();
}

it('once an answer has begun, its connection breaks', async () => {
  wire.provider.script = async (req) => {
    req.socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
    await req.closed;
  };
  const client = await wire.connect();
  client.send(request(CALL, [wire.auth, CHUNKED], chunkOf(10)));
  const reply = await client.head();
  client.send(chunkOf(1_000));
  await client.closed;
  const row = await wire.gateway.row(reply.header('x-gateway-request-id')!);
  expect(row).toMatchObject({ outcome: 'client_error', status: 200, error_code: 'request_too_large' });
  await wire.expectSound(1);
});
