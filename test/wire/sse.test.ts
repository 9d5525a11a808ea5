import { deferred } from '../support/deferred.js';
import { RawClient, request } from '../support/raw-client.js';
import { chunk, LAST_CHUNK, RawProvider, STREAM_HEAD } from '../support/raw-provider.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

let gateway: TestGateway;
let provider: RawProvider;

beforeAll(async () => {
  provider = await RawProvider.start(() => {});
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

it('passes each event on before the next one exists', async () => {
  const events = [': hello\n\n', 'data: {"a":"é"}\r\n\r\n', 'event: x\ndata: 2\n\n', 'data: [DONE]\n\n'].map(
    (event) => Buffer.from(event),
  );
  // The provider sends an event only after the client has confirmed the one before.
  const confirmed = events.map(() => deferred());
  provider.script = async (req) => {
    await req.body;
    req.socket.write(STREAM_HEAD);
    for (const [i, event] of events.entries()) {
      req.socket.write(chunk(event));
      await confirmed[i]!.promise;
    }
    req.socket.write(LAST_CHUNK);
  };
  const client = await RawClient.connect(gateway.port);
  client.send(
    request('POST /v1/chat/completions', [`Authorization: Bearer ${gateway.key}`], '{"stream":true}'),
  );
  const head = await client.head();
  expect(head.header('transfer-encoding')).toBe('chunked');
  for (const [i, event] of events.entries()) {
    expect((await client.reader.take(chunk(event).length)).equals(chunk(event))).toBe(true);
    confirmed[i]!.resolve();
  }
  expect((await client.reader.take(5)).toString()).toBe(LAST_CHUNK);
  const row = await gateway.row(head.header('x-gateway-request-id')!);
  expect(row).toMatchObject({
    outcome: 'completed',
    streamed: true,
    response_bytes: String(Buffer.concat(events).length),
  });
  client.destroy();
});

it('sends the head before there is a body, with its latin-1 bytes as they are', async () => {
  const headSeen = deferred();
  provider.script = async (req) => {
    await req.body;
    req.socket.write(
      Buffer.from('HTTP/1.1 200 OK\r\nX-Name: caf\xe9\r\nTransfer-Encoding: chunked\r\n\r\n', 'latin1'),
    );
    await headSeen.promise;
    req.socket.write(chunk('late'));
    req.socket.write(LAST_CHUNK);
  };
  const client = await RawClient.connect(gateway.port);
  client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${gateway.key}`], '{}'));
  const head = await client.head();
  expect(head.header('x-name')).toBe('caf\xe9');
  headSeen.resolve();
  expect((await client.reader.body(head.headers)).bytes.toString()).toBe('late');
  client.destroy();
});
