import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { lingerOverUnreadBody } from '../../src/proxy/http/unread-body.js';
import { RawClient, request } from '../support/raw-client.js';

let server: Server;
let port: number;
beforeAll(async () => {
  server = createServer((req, res) => {
    res.on('close', () => {
      if (!req.complete) lingerOverUnreadBody(req, 2_000);
    });
    res.end('enough');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

/** Sends a head that announces this much, and a part of it. */
async function answered(announced: number, part: string): Promise<RawClient> {
  const client = await RawClient.connect(port);
  client.send(request('POST /', [`Content-Length: ${announced}`], part));
  expect((await client.answer()).body.toString()).toBe('enough');
  return client;
}

it('a client that sends no more is closed when the time is over', async () => {
  const client = await answered(10, 'a');
  await client.closed;
});

it('a body that comes to its end leaves the connection as it was', async () => {
  const client = await answered(10, 'a');
  client.send('b'.repeat(9));
  // A connection answered later is closed when its time is over; this one is not.
  await (
    await answered(10, 'a')
  ).closed;
  client.send(request('GET /', []));
  expect((await client.answer()).body.toString()).toBe('enough');
  client.destroy();
});
