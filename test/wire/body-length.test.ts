import { once } from 'node:events';
import { request } from '../support/raw-client.js';
import { answersOn, Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const LINE = 'POST /v1/chat/completions';

it.each([
  ['Content-Length', 'Content-Length: 10', 'short'],
  ['chunks', 'Transfer-Encoding: chunked', '5\r\nshort\r\n'],
  ['half a chunk', 'Transfer-Encoding: chunked', 'a\r\nshort'],
])('a body that ends before its %s does is never passed on as a whole one', async (_, framing, body) => {
  const before = wire.provider.requests.length;
  const client = await wire.connect();
  client.send(request(LINE, [wire.auth, framing], body));
  client.socket.end();
  expect(await answersOn(client, 1)).toEqual([]);
  await client.closed;
  const begun = wire.provider.requests.slice(before);
  for (const { body: passedOn } of begun) await expect(passedOn).rejects.toThrow();
  await wire.expectSound(begun.length);
});

it('what comes after the announced length is the next request, and refused when it is none', async () => {
  const client = await wire.connect();
  client.send(request(LINE, [wire.auth, 'Content-Length: 2'], '{}and more than was announced\r\n\r\n'));
  const [first, second] = await answersOn(client, 3);
  expect([first!.status, first!.body.toString()]).toEqual([200, '{}']);
  wire.expectRefusal(second, 400, 'invalid_request');
  await client.closed;
  await wire.expectSound(1);
});

it('a line break after a body is part of nothing', async () => {
  const client = await wire.connect();
  for (const body of ['first', 'second']) {
    client.send(request(LINE, [wire.auth, `Content-Length: ${body.length}`], `${body}\r\n`));
    expect((await client.answer()).body.toString()).toBe(body);
  }
  client.destroy();
  await wire.expectSound(2);
});

it('what comes after a request that announced the end of its connection is no request', async () => {
  const client = await wire.connect();
  client.send(
    Buffer.concat([
      request(LINE, [wire.auth, 'Connection: close'], 'last'),
      request(LINE, [wire.auth], 'one more'),
    ]),
  );
  const [first] = await answersOn(client, 2);
  expect([first!.status, first!.header('connection'), first!.body.toString()]).toEqual([
    200,
    'close',
    'last',
  ]);
  await client.closed;
  await wire.expectSound(1);
});

it('a connection without a request ends without an answer', async () => {
  const client = await wire.connect();
  client.socket.end();
  await once(client.socket, 'end');
  await client.closed;
  expect(client.reader.rest).toHaveLength(0);
  await wire.expectSound(0);
});
