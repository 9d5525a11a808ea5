import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import type { GatewayProcess } from '../support/process.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { Site } from '../support/site.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

interface Value {
  stringValue?: string;
  intValue?: number | string;
}
interface Span {
  name: string;
  kind: number;
  traceId: string;
  parentSpanId?: string;
  traceState?: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status: { code: number };
  attributes: { key: string; value: Value }[];
}
interface Export {
  resourceSpans: { resource: { attributes: Span['attributes'] }; scopeSpans: { spans: Span[] }[] }[];
}

let collector: Server;
let received: { path?: string; token?: string; body: Export }[];
let provider: RawProvider;
let site: Site;
let database: TestDatabase;
let gateway: GatewayProcess;
let url: string;
let key: string;
beforeEach(async () => {
  site = await Site.make({
    script: async ({ head, body, socket }) => {
      await body.catch(() => {});
      if (head.includes('x-break')) return void socket.destroy();
      const usage = '{"model":"m-2026","usage":{"prompt_tokens":8,"completion_tokens":2}}';
      const status = head.includes('x-limit') ? '429 Too Many Requests' : '200 OK';
      socket.write(answer(status, ['Content-Type: application/json'], usage));
    },
  });
  ({ database, provider } = site);
  received = [];
  collector = createServer((req, res) => {
    let text = '';
    req.on('data', (chunk) => (text += String(chunk)));
    req.on('end', () => {
      const token = req.headers['x-token'] as string;
      received.push({ path: req.url, token, body: JSON.parse(text) as Export });
      res.setHeader('content-type', 'application/json').end('{}');
    });
  });
  await new Promise<void>((listening) => collector.listen(0, '127.0.0.1', listening));
});
afterEach(async () => {
  await site.remove();
  collector.closeAllConnections();
  await new Promise((closed) => collector.close(closed));
});

async function start(variables: Record<string, string>): Promise<void> {
  gateway = site.gateway(variables);
  [url, key] = await Promise.all([gateway.ready(), gateway.firstKey()]);
}

const stop = async () => expect(await gateway.stop()).toEqual({ code: 0, signal: null });

interface Row {
  started_at: Date;
  duration_ms: number;
  team_id: string;
  key_id: string;
}
const rowOf = (id: string) =>
  eventually(async () => (await database.query<Row>('SELECT * FROM request_log WHERE id = $1', [id]))[0]);

const endpoint = () => `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;

async function call(headers: string[]): Promise<string> {
  const client = await RawClient.connect(Number(new URL(url).port));
  const auth = `Authorization: Bearer ${key}`;
  client.send(request('POST /v1/chat/completions', [auth, ...headers], '{"model":"m"}'));
  const reply = await client.answer();
  client.destroy();
  return reply.header('x-gateway-request-id')!;
}

const plain = (attributes: Span['attributes']) =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)] as const),
  );

it('sends one client span for each call to a provider, with the figures of its row, under the parent of the client', async () => {
  await start({
    OTEL_EXPORTER_OTLP_ENDPOINT: `${endpoint()}/`,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-token=a%20secret',
    OTEL_SERVICE_NAME: 'gateway-test',
  });
  const traced = [`traceparent: 00-${TRACE}-${PARENT}-01`, 'tracestate: vendor=1'];
  const ids = [await call(traced), await call(['x-limit: 1']), await call(['x-break: 1'])];
  await call([`traceparent: 00-${TRACE}-${PARENT}-00`]);
  await call(['traceparent: 00-nonsense-01']);
  const rows = await Promise.all(ids.map(rowOf));
  // What is passed on is what came, and no more.
  const sent = provider.requests.map(({ headers }) =>
    headers.filter(([name]) => /^trace/i.test(name)).map((header) => header.join(': ')),
  );
  const unsampled = [`traceparent: 00-${TRACE}-${PARENT}-00`];
  expect(sent).toEqual([traced, [], [], unsampled, ['traceparent: 00-nonsense-01']]);
  await stop();

  for (const { path, token } of received) expect([path, token]).toEqual(['/v1/traces', 'a secret']);
  const resource = plain(received[0]!.body.resourceSpans[0]!.resource.attributes);
  expect(resource).toMatchObject({ 'service.name': 'gateway-test' });
  const spans = received.flatMap(({ body }) =>
    body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)),
  );
  // The client wanted no trace of the fourth.
  expect(spans).toHaveLength(4);
  const CLIENT = 3;
  const ERROR = 2;
  for (const span of spans) expect([span.name, span.kind]).toEqual(['chat m', CLIENT]);
  expect(spans[0]).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, traceState: 'vendor=1' });
  for (const span of spans.slice(1)) {
    expect(span.traceId).not.toBe(TRACE);
    expect(span.parentSpanId ?? '').toBe('');
  }
  const { port } = new URL(provider.url);
  const common = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'default',
    'gen_ai.request.model': 'm',
    'server.address': '127.0.0.1',
    'server.port': Number(port),
    'http.request.method': 'POST',
    'postern.provider': 'default',
    'postern.team_id': rows[0]!.team_id,
    'postern.key_id': rows[0]!.key_id,
  };
  const answered = {
    'gen_ai.response.model': 'm-2026',
    'gen_ai.usage.input_tokens': 8,
    'gen_ai.usage.output_tokens': 2,
  };
  expect(plain(spans[0]!.attributes)).toEqual({
    ...common,
    ...answered,
    'http.response.status_code': 200,
    'postern.outcome': 'completed',
    'postern.request_id': ids[0],
  });
  expect(plain(spans[1]!.attributes)).toEqual({
    ...common,
    ...answered,
    'http.response.status_code': 429,
    'error.type': '429',
    'postern.outcome': 'completed',
    'postern.request_id': ids[1],
  });
  expect(plain(spans[2]!.attributes)).toEqual({
    ...common,
    'error.type': 'upstream_invalid_response',
    'postern.outcome': 'upstream_error',
    'postern.request_id': ids[2],
  });
  expect(spans.map(({ status }) => status.code === ERROR)).toEqual([false, true, true, false]);
  for (const [i, row] of rows.entries()) {
    const { startTimeUnixNano, endTimeUnixNano } = spans[i]!;
    expect(Number(BigInt(startTimeUnixNano) / 1_000_000n)).toBe(row.started_at.getTime());
    const ms = Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6;
    expect(ms).toBeCloseTo(row.duration_ms, 1);
  }
});

// Beside the process above, which shows that the packages for it are loaded, one of the test's own will do.
async function startHere(variables: Record<string, string>): Promise<() => Promise<void>> {
  const here = await startTestGateway({ PROVIDER_URL: provider.url, ...variables }, database);
  ({ url, key } = here);
  return () => here.stop();
}

it('is off with OTEL_TRACES_EXPORTER=none', async () => {
  const end = await startHere({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint(), OTEL_TRACES_EXPORTER: 'none' });
  await rowOf(await call([]));
  await end();
  expect(received).toEqual([]);
});

it('harms no call and no stop while the collector is unavailable', async () => {
  const end = await startHere({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:9/x' });
  expect(await rowOf(await call([]))).toMatchObject({ outcome: 'completed' });
  await end();
});
