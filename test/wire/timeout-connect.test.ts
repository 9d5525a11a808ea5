import { createServer, type AddressInfo, type Socket } from 'node:net';
import { deferred } from '../support/deferred.js';
import { startTestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { UnacceptingPort } from '../support/unaccepting-port.js';
import { Wire } from '../support/wire.js';

const SETTINGS = { UPSTREAM_CONNECT_TIMEOUT_MS: '200' };
const CALL = 'POST /v1/chat/completions';

let unaccepting: UnacceptingPort;
beforeAll(async () => {
  unaccepting = await UnacceptingPort.open();
});
afterAll(() => unaccepting.close());

async function callThrough(url: string) {
  const gateway = await startTestGateway({ ...SETTINGS, PROVIDER_URL: url });
  const client = await RawClient.connect(gateway.port);
  client.send(request(CALL, [`Authorization: Bearer ${gateway.key}`], '{}'));
  const reply = await client.answer();
  client.destroy();
  const row = await gateway.row(reply.header('x-gateway-request-id')!);
  await gateway.stop();
  return { reply, row };
}

const UNREACHABLE = { outcome: 'upstream_error', status: 502, error_code: 'upstream_unreachable' };

it('a connection that is never established is a 502, and its time is no other phase’s', async () => {
  // Meanwhile a call with the same setting waits at a provider that thinks.
  const release = deferred();
  const arrived = deferred();
  const wire = await Wire.start(SETTINGS);
  wire.provider.script = async (req) => {
    await req.body;
    arrived.resolve();
    await release.promise;
    req.socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  };
  const thinking = wire.call(CALL, [], '{}');
  await arrived.promise;

  const { reply, row } = await callThrough(`http://127.0.0.1:${unaccepting.port}`);
  wire.expectRefusal(reply, 502, 'upstream_unreachable');
  expect(row).toMatchObject(UNREACHABLE);

  release.resolve();
  expect((await thinking).body.toString()).toBe('ok');
  await wire.stop();
});

it('a TLS handshake that is never answered is a 502', async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket.on('error', () => {})));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { reply, row } = await callThrough(`https://127.0.0.1:${(silent.address() as AddressInfo).port}`);
  expect([reply.status, reply.header('x-gateway-error')]).toEqual([502, 'upstream_unreachable']);
  expect(row).toMatchObject(UNREACHABLE);
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => silent.close(resolve));
});
