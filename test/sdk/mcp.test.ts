import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  type EventStore,
  StreamableHTTPServerTransport,
} from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolResultSchema, type JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { PROVIDER_KEY, startTestGateway, type TestGateway } from '../support/gateway.js';

// An MCP server behind the gateway, with the official SDK on both sides: Streamable HTTP is POST, GET and DELETE with SSE.

/** Keeps the events of streams, so that a client that was cut off gets those it has missed. */
class Events implements EventStore {
  private readonly events: { id: string; streamId: string; message: JSONRPCMessage }[] = [];

  storeEvent(streamId: string, message: JSONRPCMessage): Promise<string> {
    const id = `${streamId}:${this.events.length}`;
    this.events.push({ id, streamId, message });
    return Promise.resolve(id);
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const at = this.events.findIndex(({ id }) => id === lastEventId);
    const { streamId } = this.events[at]!;
    for (const { id, streamId: of, message } of this.events.slice(at + 1))
      if (of === streamId) await send(id, message);
    return streamId;
  }
}

let server: Server;
let requests: IncomingMessage[];
let sessions: Map<string, StreamableHTTPServerTransport>;
/** Reached by the tool `work` after its first notification. */
let started = deferred();
let goOn = deferred();
let cancelled: unknown = null;
let gateway: TestGateway;
let key: string;

function mcpServer(): McpServer {
  const mcp = new McpServer({ name: 'tools', version: '1.0.0' });
  mcp.registerTool('work', { description: 'works for a while' }, async (extra) => {
    extra.signal.addEventListener('abort', () => {
      cancelled = extra.signal.reason;
    });
    const token = extra._meta?.progressToken;
    if (token !== undefined)
      await extra.sendNotification({
        method: 'notifications/progress',
        params: { progressToken: token, progress: 1, total: 2 },
      });
    started.resolve();
    await goOn.promise;
    return { content: [{ type: 'text', text: 'done: \u{1f6e0}' }] };
  });
  return mcp;
}

beforeAll(async () => {
  requests = [];
  sessions = new Map();
  server = createServer((req, res) => {
    requests.push(req);
    void (async () => {
      const id = req.headers['mcp-session-id'] as string | undefined;
      let transport = id === undefined ? undefined : sessions.get(id);
      if (transport === undefined) {
        const opened = new StreamableHTTPServerTransport({
          sessionIdGenerator: randomUUID,
          eventStore: new Events(),
          onsessioninitialized: (session) => void sessions.set(session, opened),
          onsessionclosed: (session) => void sessions.delete(session),
        });
        transport = opened;
        await mcpServer().connect(transport);
      }
      await transport.handleRequest(req, res);
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  gateway = await startTestGateway();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await gateway.admin('POST', '/providers', { name: 'tools', url, secret: PROVIDER_KEY });
  key = await gateway.createKey({ endpoints: 'all', providers: ['tools'] });
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
beforeEach(() => {
  [started, goOn, cancelled] = [deferred(), deferred(), null];
});

/** @param maxRetries of a stream that has ended */
async function connect(
  maxRetries = 20,
): Promise<{ client: Client; transport: StreamableHTTPClientTransport }> {
  const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/p/tools/mcp`), {
    requestInit: { headers: { Authorization: `Bearer ${key}` } },
    reconnectionOptions: {
      initialReconnectionDelay: 10,
      maxReconnectionDelay: 100,
      reconnectionDelayGrowFactor: 1,
      maxRetries,
    },
  });
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(transport);
  return { client, transport };
}

it('has sessions of its own for each client, until they end them', async () => {
  // The client must not reconnect while it is being closed.
  const [one, two] = [await connect(0), await connect(0)];
  const ids = [one, two].map(({ transport }) => transport.sessionId!);
  expect([...sessions.keys()].sort()).toEqual([...ids].sort());
  expect(ids[0]).not.toBe(ids[1]);
  expect((await one.client.listTools()).tools.map(({ name }) => name)).toEqual(['work']);
  goOn.resolve();
  expect(await two.client.callTool({ name: 'work' })).toMatchObject({
    content: [{ type: 'text', text: 'done: \u{1f6e0}' }],
  });
  await one.transport.terminateSession();
  expect([...sessions.keys()]).toEqual([ids[1]]);
  expect(requests.map(({ headers }) => headers.authorization)).toEqual(
    requests.map(() => `Bearer ${PROVIDER_KEY}`),
  );
  expect(new Set(requests.map(({ method, url }) => `${method} ${url}`))).toEqual(
    new Set(['POST /mcp', 'GET /mcp', 'DELETE /mcp']),
  );
  await one.client.close();
  await two.client.close();
  // Each request has its row, the streams too once they have ended.
  await eventually(async () => (await gateway.rowCount()) === requests.length);
  const rows = await gateway.database.query<{ method: string; path: string; status: number }>(
    "SELECT DISTINCT method, path, status FROM request_log WHERE method = 'DELETE' OR prompt_tokens IS NOT NULL",
  );
  expect(rows).toEqual([{ method: 'DELETE', path: '/p/tools/mcp', status: 200 }]);
});

it('resumes a stream that was cut off, and misses nothing', async () => {
  const { client, transport } = await connect();
  const progress: number[] = [];
  const tokens: string[] = [];
  const before = requests.length;
  const result = client.request(
    { method: 'tools/call', params: { name: 'work', arguments: {} } },
    CallToolResultSchema,
    {
      onprogress: ({ progress: step }) => progress.push(step),
      onresumptiontoken: (token) => tokens.push(token),
      timeout: 120_000,
    },
  );
  await started.promise;
  await eventually(() => progress.length === 1);
  // The stream of the call breaks off in the middle, and the call goes on.
  const call = requests.slice(before).find(({ method }) => method === 'POST')!;
  call.socket.destroy();
  goOn.resolve();
  expect(await result).toMatchObject({ content: [{ text: 'done: \u{1f6e0}' }] });
  const resumed = requests.slice(before).find(({ headers }) => headers['last-event-id'] !== undefined)!;
  expect([resumed.method, tokens]).toEqual([
    'GET',
    expect.arrayContaining([resumed.headers['last-event-id']]),
  ]);
  expect(progress).toEqual([1]);
  await transport.terminateSession();
  await client.close();
});

it('passes a cancellation on', async () => {
  const { client, transport } = await connect();
  const cancel = new AbortController();
  const result = client.callTool({ name: 'work' }, undefined, { signal: cancel.signal });
  await started.promise;
  cancel.abort('not needed any more');
  await expect(result).rejects.toThrow(/not needed any more/);
  expect(await eventually(() => cancelled)).toBe('not needed any more');
  goOn.resolve();
  await transport.terminateSession();
  await client.close();
});

it('is not for keys that may only use inference endpoints', async () => {
  const response = await fetch(`${gateway.url}/p/tools/mcp`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: '{}',
  });
  expect([response.status, response.headers.get('x-gateway-error')]).toEqual([403, 'endpoint_not_allowed']);
});
