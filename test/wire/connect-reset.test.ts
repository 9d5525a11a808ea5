import { RawClient } from '../support/raw-client.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());

// Node takes its own listeners off a socket before it hands it over for CONNECT: a reset then has nobody to catch it.
it('survives clients that ask for a tunnel and reset the connection', async () => {
  for (let i = 0; i < 30; i++) {
    const client = await RawClient.connect(gateway.port);
    client.send('CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n');
    if (i % 2 === 0) client.socket.resetAndDestroy();
    else await client.answer().then((reply) => expect(reply.status).toBe(405));
    client.socket.resetAndDestroy();
    await client.closed;
  }
  const probe = await fetch(`${gateway.url}/health/live`);
  expect(probe.status).toBe(200);
});
