import { RawClient, request } from '../support/raw-client.js';
import { chunk, RawProvider, type ReceivedRequest } from '../support/raw-provider.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type LogRowView, type TestGateway } from '../support/gateway.js';

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

const HEADERS = () => [`Authorization: Bearer ${gateway.key}`];

async function onlyRow(): Promise<LogRowView> {
  const row = await eventually(
    async () => (await gateway.database.query<LogRowView>('SELECT * FROM request_log'))[0],
  );
  await gateway.database.query('TRUNCATE request_log');
  return row;
}

async function leaveAt(moment: (client: RawClient, seen: Promise<ReceivedRequest>) => Promise<void>) {
  const seen = new Promise<ReceivedRequest>((resolve) => {
    provider.script = async (req) => {
      resolve(req);
      await req.closed;
    };
  });
  const client = await RawClient.connect(gateway.port);
  await moment(client, seen);
  client.destroy();
  await (
    await seen
  ).closed;
}

it('closes the upload to the provider when the client leaves in the middle of it', async () => {
  await leaveAt(async (client, seen) => {
    client.send(
      request('POST /v1/chat/completions', [...HEADERS(), 'Content-Length: 500000'], 'x'.repeat(300_000)),
    );
    await seen;
  });
  expect(await onlyRow()).toMatchObject({ outcome: 'client_aborted', status: null });
});

it('closes the call when the client leaves before the head of the answer', async () => {
  await leaveAt(async (client, seen) => {
    client.send(request('POST /v1/chat/completions', HEADERS(), '{}'));
    await (
      await seen
    ).body;
  });
  expect(await onlyRow()).toMatchObject({ outcome: 'client_aborted', status: null, request_bytes: '2' });
});

it('closes the call when the client leaves in the middle of the answer', async () => {
  const closed = new Promise<void>((resolve) => {
    provider.script = async (req) => {
      await req.body;
      req.socket.write(
        `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n`,
      );
      req.socket.write(chunk('data: 1\n\n'));
      await req.closed;
      resolve();
    };
  });
  const client = await RawClient.connect(gateway.port);
  client.send(request('POST /v1/chat/completions', HEADERS(), '{}'));
  await client.head();
  await client.reader.take(9);
  client.destroy();
  await closed;
  expect(await onlyRow()).toMatchObject({
    outcome: 'client_aborted',
    status: 200,
    streamed: true,
    response_bytes: '9',
  });
});

it('forwards nothing and leaves no row when the client leaves before its short body is whole', async () => {
  const seen = provider.requests.length;
  const client = await RawClient.connect(gateway.port);
  client.send(request('POST /v1/chat/completions', [...HEADERS(), 'Content-Length: 50'], 'x'));
  await new Promise((resolve) => setTimeout(resolve, 50));
  client.destroy();
  const probe = await fetch(`${gateway.url}/health/live`);
  expect(probe.status).toBe(200);
  expect(provider.requests.length).toBe(seen);
  expect(await gateway.rowCount()).toBe(0);
});
