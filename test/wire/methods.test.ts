import { METHODS } from 'node:http';
import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

it.each(METHODS.filter((method) => !['CONNECT', 'TRACE'].includes(method)))('carries %s', async (method) => {
  const reply = await wire.call(`${method} /v1/things/1`);
  expect([reply.status, reply.header('x-target')]).toEqual([200, '/v1/things/1']);
  expect(wire.provider.requests.at(-1)!.head.split('\r\n')[0]).toBe(`${method} /v1/things/1 HTTP/1.1`);
  await wire.expectSound(1);
});

it.each(['GET', 'DELETE', 'OPTIONS', 'SEARCH'])('carries a %s with a body', async (method) => {
  const reply = await wire.call(`${method} /v1/things`, [], 'a body');
  expect([reply.status, reply.body.toString()]).toEqual([200, 'a body']);
  await wire.expectSound(1);
});

it.each(['/v1/models', '/', '*'])('refuses TRACE %s with 405', async (target) => {
  const [reply] = await wire.send(request(`TRACE ${target}`, [wire.auth]));
  wire.expectRefusal(reply, 405, 'method_not_allowed');
  expect(reply!.body.toString()).not.toContain('ptn_');
  await wire.expectSound(0);
});

it.each(['provider.test:443', '127.0.0.1:80'])('refuses CONNECT %s with 405 and closes', async (target) => {
  const client = await wire.connect();
  client.send(
    Buffer.concat([request(`CONNECT ${target}`, [wire.auth]), request('GET /v1/models', [wire.auth])]),
  );
  wire.expectRefusal(await client.answer(), 405, 'method_not_allowed');
  await client.closed;
  expect(client.reader.rest).toHaveLength(0);
  await wire.expectSound(0);
});

it.each(['get', 'Get', 'FOO', 'GETX', 'G\tET', 'G\xe9T', 'GET\0', '"GET"'])(
  'refuses the method %j with 400 and closes',
  async (method) => {
    const client = await wire.connect();
    client.send(request(`${method} /v1/models`, [wire.auth]));
    wire.expectRefusal(await client.answer(), 400, 'invalid_request');
    await client.closed;
    await wire.expectSound(0);
  },
);
