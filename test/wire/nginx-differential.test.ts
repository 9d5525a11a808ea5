import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { never } from '../support/never.js';
import type { ReceivedRequest } from '../support/raw-provider.js';
import { echo, Wire } from '../support/wire.js';
import { Nginx, nginxVersion } from './nginx.js';
import { NGINX_IS_STRICTER, ODD_REQUESTS, RELEASES_DIFFER } from './odd-requests.js';

const version = nginxVersion();
let wire: Wire;
let nginx: Nginx;
/** What the provider is sent for the request under comparison. */
let seen: ReceivedRequest[] = [];

/** Sends the bytes, waits for the first answer or the end, and tells how many requests went through. */
async function forwarded(socket: Socket, bytes: Buffer): Promise<number> {
  seen = [];
  socket.on('error', () => {});
  await once(socket, 'connect');
  let received = Buffer.alloc(0);
  const settled = new Promise<void>((resolve) => {
    socket.on('data', (data) => {
      received = Buffer.concat([received, data]);
      // An interim answer is no verdict.
      if (/^HTTP\/1\.1 (?!1)\d\d\d /m.test(received.toString('latin1'))) resolve();
    });
    socket.once('close', () => resolve());
  });
  socket.write(bytes);
  await settled;
  // What came behind the first request had its chance when the connection has ended.
  socket.end();
  socket.resume();
  if (!socket.destroyed) await once(socket, 'close');
  return seen.length;
}

async function compare(bytes: Buffer): Promise<{ byNginx: number; byGateway: number }> {
  const byNginx = await forwarded(connect(nginx.socketPath), bytes);
  const byGateway = await forwarded(connect(wire.gateway.port, '127.0.0.1'), bytes);
  return { byNginx, byGateway };
}

if (version === null) {
  it('nginx is not installed here: nothing was compared', () => {
    process.stdout.write(
      'nginx is not installed: what it rejects was not compared with what the gateway rejects\n',
    );
  });
} else {
  beforeAll(async () => {
    wire = await Wire.start({}, async (req) => {
      // A body that breaks on its way was streamed by the gateway and gathered by nginx: neither passes it on as whole.
      await req.body.then(
        () => seen.push(req),
        () => {},
      );
      await echo(req);
    });
    nginx = await Nginx.start(new URL(wire.provider.url).host);
  });
  afterAll(async () => {
    await nginx.stop();
    await wire.stop();
  });

  never.each(ODD_REQUESTS)('forwards nothing that nginx rejects: %s', async (what, bytes) => {
    const filled = Buffer.from(bytes.replaceAll('AUTH', wire.auth), 'latin1');
    const { byNginx, byGateway } = await compare(filled);
    if (NGINX_IS_STRICTER.has(what)) expect({ byNginx, byGateway }).toEqual({ byNginx: 0, byGateway: 1 });
    else if (RELEASES_DIFFER.has(what)) expect(byNginx).toBe(0);
    else expect(byGateway).toBeLessThanOrEqual(byNginx);
  });
}
