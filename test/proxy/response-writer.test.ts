import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Request, Response } from 'express';
import { ResponseWriter } from '../../src/proxy/exchange/response-writer.js';
import { RawClient, request } from '../support/raw-client.js';

const HINT = ['Link', '</a.css>; rel=preload'];

it('passes an early hint, and drops one for a client that has not taken what it was sent', async () => {
  const written: number[] = [];
  const server = createServer((req: IncomingMessage, res: ServerResponse) => {
    const { socket } = req;
    const answer = new ResponseWriter(req as Request, res as Response, 1_000, () => {});
    const hint = () => {
      const before = socket.bytesWritten;
      answer.earlyHints(HINT);
      written.push(socket.bytesWritten - before);
    };
    hint();
    // More than any socket buffer takes.
    socket.write(Buffer.alloc(64 * 1024 * 1024));
    expect(socket.writableNeedDrain).toBe(true);
    hint();
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = await RawClient.connect((server.address() as AddressInfo).port);
  client.socket.pause();
  client.send(request('GET /', []));
  client.socket.resume();
  await client.closed;
  expect(written).toEqual([`HTTP/1.1 103 Early Hints\r\nLink: ${HINT[1]}\r\n\r\n`.length, 0]);
  await new Promise((resolve) => server.close(resolve));
});
