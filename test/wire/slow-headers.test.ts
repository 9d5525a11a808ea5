import { request } from '../support/raw-client.js';
import { answersOn, Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start({ CLIENT_HEADERS_TIMEOUT_MS: '300' });
});
afterAll(() => wire.stop());

it.each([
  ['nothing', ''],
  ['half a request line', 'POST /v1/ch'],
  ['half a head', 'POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nX-Slo'],
  ['a head without its end', 'POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAUTH\r\n'],
  ['half an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\n'],
])('answers 408 in our shape to a client that stops after %s', async (_, bytes) => {
  const client = await wire.connect();
  if (bytes !== '') client.send(bytes.replace('AUTH', wire.auth));
  const reply = await client.answer();
  wire.expectRefusal(reply, 408, 'request_timeout');
  expect([reply.header('connection'), reply.header('x-should-retry')]).toEqual(['close', undefined]);
  client.send('the rest, too late\r\n\r\n');
  await client.closed;
  await wire.expectSound(0);
});

it('answers 408 to the slow second request of a connection, after the first was answered', async () => {
  const client = await wire.connect();
  client.send(request('POST /v1/chat/completions', [wire.auth], 'first'));
  client.send('POST /v1/chat/completions HTTP/1.1\r\nHo');
  const [first, second] = await answersOn(client, 3);
  expect(first!.body.toString()).toBe('first');
  wire.expectRefusal(second, 408, 'request_timeout');
  await client.closed;
  await wire.expectSound(1);
});
