import { eventually } from '../support/eventually.js';
import { RequestLogService } from '../../src/request-log/request-log.service.js';
import { never } from '../support/never.js';
import { RawClient, request } from '../support/raw-client.js';
import { chunk } from '../support/raw-provider.js';
import { echo, Wire } from '../support/wire.js';
import { FULL } from '../support/scale.js';

const ABORTS = FULL ? 10_000 : 800;
const LANES = 20;

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

/** What a client has sent, and what it waits for, at the moment it leaves. */
const MANNERS: [headers: string[], body: string, waits: (client: RawClient) => Promise<unknown>][] = [
  [[], '{}', () => Promise.resolve()],
  [['Content-Length: 100'], 'half', () => Promise.resolve()],
  [['X-Head: 1'], '{}', (client) => client.head()],
  [['X-Chunks: 1'], '{}', (client) => client.head()],
  [['X-Whole: 1'], '{}', (client) => client.answer()],
  [['Transfer-Encoding: chunked'], '4\r\nhalf\r\n', () => Promise.resolve()],
  [['Transfer-Encoding: chunked', 'X-Head: 1'], '4\r\nhalf\r\n', (client) => client.head()],
  [['Authorization: Bearer junk', 'Content-Length: 900000'], 'half', (client) => client.head()],
];

never(
  `${ABORTS} clients that leave in the middle leave nothing behind`,
  async () => {
    wire.provider.script = async (req) => {
      if (req.head.includes('X-Head')) req.socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
      else if (req.head.includes('X-Chunks')) {
        req.socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
        req.socket.write(chunk('half'));
      } else if (req.head.includes('X-Whole')) return echo(req);
      await req.closed;
    };
    const { app } = wire.gateway.gateway;
    const adapter = (app as unknown as { httpAdapter: { openRequests: number } }).httpAdapter;
    const log = app.get(RequestLogService);
    const handles = () =>
      process.getActiveResourcesInfo().filter((kind) => /^(TCP|Immediate)/.test(kind)).length;
    await wire.call('POST /v1/chat/completions', ['X-Whole: 1'], '{}');
    const before = handles();

    let left = 0;
    const lane = async () => {
      while (left < ABORTS) {
        const [headers, body, waits] = MANNERS[left++ % MANNERS.length]!;
        const client = await wire.connect();
        const own = headers.some((header) => header.startsWith('Authorization'));
        client.send(request('POST /v1/chat/completions', [...(own ? [] : [wire.auth]), ...headers], body));
        await waits(client);
        if (left % 3 === 0) client.socket.resetAndDestroy();
        else client.destroy();
        await client.closed;
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));

    await eventually(() => adapter.openRequests === 0);
    await eventually(() => log.openCount === 0);
    // The provider's end of every connection that carried a call left in the middle is closed too.
    await eventually(() => handles() <= before);
    const rows = await eventually(async () => {
      const found = await wire.gateway.database.query<{ outcome: string; count: number }>(
        'SELECT outcome, count(*)::int AS count FROM request_log GROUP BY outcome',
      );
      const sum = found.reduce((total, { count }) => total + count, 0);
      return sum >= wire.provider.requests.length && found;
    });
    expect(rows.map(({ outcome }) => outcome).sort()).toEqual(['client_aborted', 'completed']);
    // And the gateway serves as before.
    await wire.call('POST /v1/chat/completions', ['X-Whole: 1'], '{}');
  },
  300_000,
);
