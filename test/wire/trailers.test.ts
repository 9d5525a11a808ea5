import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const CHUNKED = 'Transfer-Encoding: chunked';
const WITH_TRAILER = '2\r\n{}\r\n0\r\nX-Sum: 1\r\nX-Gateway-Key: 2\r\n\r\n';
const WITHOUT = '2\r\n{}\r\n0\r\n\r\n';

/** RFC 9110 6.5.1: they may be dropped, and merging them into the head is what must not happen. */
it("drops a client's trailers", async () => {
  const [reply] = await wire.send(
    request('POST /v1/chat/completions', [wire.auth, 'Trailer: X-Sum', CHUNKED], WITH_TRAILER),
  );
  expect(reply!.status).toBe(200);
  const { head, body } = wire.provider.requests.at(-1)!;
  expect(head).not.toMatch(/x-sum|x-gateway/i);
  expect((await body).framed.toString()).toBe(WITHOUT);
  await wire.expectSound(1);
});

it("drops a provider's trailers", async () => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(`HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\n${CHUNKED}\r\n\r\n${WITH_TRAILER}`);
  };
  const client = await wire.connect();
  client.send(request('POST /v1/chat/completions', [wire.auth], '{}'));
  const head = await client.head();
  expect(head.head).not.toMatch(/x-sum|trailer/i);
  expect((await client.reader.body(head.headers)).framed.toString()).toBe(WITHOUT);
  client.destroy();
  await wire.expectSound(1);
});
