import { createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type LogRowView, type TestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { UnacceptingPort } from '../support/unaccepting-port.js';

// Longer than any of these tests: what ends an attempt here is the client's leaving.
const SETTINGS = { UPSTREAM_CONNECT_TIMEOUT_MS: '120000' };

/** Connections this process is trying to make. */
const attempts = () => process.getActiveResourcesInfo().filter((kind) => kind === 'ConnectWrap').length;

/** How many there are once nobody starts or ends one: a fresh gateway is still connecting to Postgres. */
async function attemptsAtRest(): Promise<number> {
  let count = attempts();
  for (let same = 0; same < 15; same++) {
    await sleep(20);
    if (attempts() !== count) same = 0;
    count = attempts();
  }
  return count;
}

const BODIES: [what: string, headers: string[], body: string][] = [
  ['without a body', [], ''],
  ['with a short body', ['Content-Length: 2'], '{}'],
  ['with a streamed body', ['Transfer-Encoding: chunked'], '2\r\n{}\r\n'],
];

async function expectAborted(gateway: TestGateway): Promise<void> {
  const row = await eventually(
    async () => (await gateway.database.query<LogRowView>('SELECT * FROM request_log'))[0],
  );
  expect(row).toMatchObject({ outcome: 'client_aborted', status: null });
  await gateway.database.query('TRUNCATE request_log');
}

describe('to a provider that accepts no connection', () => {
  let unaccepting: UnacceptingPort;
  let gateway: TestGateway;
  beforeAll(async () => {
    unaccepting = await UnacceptingPort.open();
    gateway = await startTestGateway({
      ...SETTINGS,
      PROVIDER_URL: `http://127.0.0.1:${unaccepting.port}`,
    });
    // Refused, but its key is known from now on: no connection to Postgres is taken for one to the provider.
    await fetch(`${gateway.url}/v1/files`, { headers: { authorization: `Bearer ${gateway.key}` } });
  });
  afterAll(async () => {
    await gateway.stop();
    await unaccepting.close();
  });

  it.each(BODIES)('the attempt of a call %s ends with its client', async (_, headers, body) => {
    const before = await attemptsAtRest();
    const client = await RawClient.connect(gateway.port);
    const line = body === '' ? 'GET /v1/models' : 'POST /v1/chat/completions';
    client.send(request(line, [`Authorization: Bearer ${gateway.key}`, ...headers], body));
    await eventually(() => attempts() === before + 1);
    client.destroy();
    await eventually(() => attempts() === before);
    await expectAborted(gateway);
  });
});

it('a TLS handshake that is not answered ends with its client', async () => {
  const accepted: Socket[] = [];
  const silent = createServer((socket) => accepted.push(socket.on('error', () => {})));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const gateway = await startTestGateway({
    ...SETTINGS,
    PROVIDER_URL: `https://127.0.0.1:${(silent.address() as AddressInfo).port}`,
  });
  const client = await RawClient.connect(gateway.port);
  client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${gateway.key}`], '{}'));
  const socket = await eventually(() => accepted[0]);
  client.destroy();
  await eventually(() => {
    socket.resume();
    return socket.destroyed;
  });
  await expectAborted(gateway);
  await gateway.stop();
  await new Promise((resolve) => silent.close(resolve));
});
