import { type AddressInfo, createServer, type Socket } from 'node:net';
import pg from 'pg';
import type { GatewayHttpAdapter } from '../../src/proxy/http/gateway-http.adapter.js';
import { Scrape } from '../observability/scrape.js';
import { eventually } from '../support/eventually.js';
import { type LogRowView, startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { chunk, RawProvider, type ReceivedRequest } from '../support/raw-provider.js';
import { UnacceptingPort } from '../support/unaccepting-port.js';
import { Wire } from '../support/wire.js';

describe('in the middle of a response', () => {
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

  it('closes the call when the client leaves before the head of the response', async () => {
    await leaveAt(async (client, seen) => {
      client.send(request('POST /v1/chat/completions', HEADERS(), '{}'));
      await (
        await seen
      ).body;
    });
    expect(await onlyRow()).toMatchObject({ outcome: 'client_aborted', status: null, request_bytes: '2' });
  });

  it('closes the call when the client leaves in the middle of the response', async () => {
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

  never(
    'forwards nothing and leaves no row when the client leaves before its short body is whole',
    async () => {
      const seen = provider.requests.length;
      const client = await RawClient.connect(gateway.port);
      client.send(request('POST /v1/chat/completions', [...HEADERS(), 'Content-Length: 50'], 'x'));
      const adapter = gateway.gateway.app.getHttpAdapter() as GatewayHttpAdapter;
      await eventually(() => adapter.openRequests === 1);
      client.destroy();
      await eventually(() => adapter.openRequests === 0);
      expect(provider.requests.length).toBe(seen);
      expect(await gateway.rowCount()).toBe(0);
    },
  );
});

describe('early', () => {
  let wire: Wire;
  let holder: pg.Client;

  beforeAll(async () => {
    wire = await Wire.start();
    holder = new pg.Client({ connectionString: wire.gateway.database.url });
    await holder.connect();
  });
  afterAll(async () => {
    await holder.end();
    await wire.stop();
  });

  /** How many sessions wait for a lock of ours: look-ups that are under way. */
  async function heldLookUps(): Promise<number> {
    const { rows } = await holder.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM pg_locks
       WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    );
    return rows[0]!.count;
  }

  never.each([
    ['without a body', 'GET /v1/models', []],
    ['with a short body', 'POST /v1/chat/completions', ['Content-Length: 2']],
    ['with a chunked body', 'POST /v1/chat/completions', ['Transfer-Encoding: chunked']],
  ])(
    'forwards nothing and ends when the client of a call %s leaves during its key look-up',
    async (_, line, headers) => {
      // A key nobody has asked for yet, so that no cache answers for it.
      const key = await wire.gateway.createKey({ endpoints: 'all' });
      const before = await heldLookUps();
      await holder.query('BEGIN; LOCK TABLE gateway_key IN ACCESS EXCLUSIVE MODE');
      const client = await wire.connect();
      client.send(request(line, [`Authorization: Bearer ${key}`, ...headers], headers.length ? '{}' : ''));
      await eventually(async () => (await heldLookUps()) > before);
      client.destroy();
      const adapter = wire.gateway.gateway.app.getHttpAdapter() as GatewayHttpAdapter;
      await eventually(() => adapter.openRequests === 0);
      await holder.query('COMMIT');
      await wire.expectSound(0);
      expect(
        (await wire.gateway.database.query('SELECT 1 FROM request_log WHERE outcome <> $1', ['completed']))
          .length,
      ).toBe(0);
    },
  );
});

describe('while the provider is connected to', () => {
  // Longer than any of these tests: what ends an attempt here is the client's leaving.
  const SETTINGS = { UPSTREAM_CONNECT_TIMEOUT_MS: '120000' };

  /** Connections this process is trying to make. */
  const attempts = () => process.getActiveResourcesInfo().filter((kind) => kind === 'ConnectWrap').length;

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
      // Rejected, but its key is known from now on: no connection to Postgres is taken for one to the provider.
      await fetch(`${gateway.url}/v1/files`, { headers: { authorization: `Bearer ${gateway.key}` } });
    });
    afterAll(async () => {
      await gateway.stop();
      await unaccepting.close();
    });

    it.each(BODIES)('the attempt of a call %s ends with its client', async (_, headers, body) => {
      const before = unaccepting.waiting;
      // A fresh gateway is still connecting to Postgres.
      await eventually(() => attempts() === before);
      const client = await RawClient.connect(gateway.port);
      const line = body === '' ? 'GET /v1/models' : 'POST /v1/chat/completions';
      client.send(request(line, [`Authorization: Bearer ${gateway.key}`, ...headers], body));
      // An attempt may be a connection to Postgres, so it alone does not show that the call has begun.
      await eventually(() => attempts() === before + 1);
      await eventually(async () => (await Scrape.of(gateway.url)).sum('postern_open_calls') === 1);
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
});
